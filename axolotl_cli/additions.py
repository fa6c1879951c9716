"""What a client has to write down for a target: how to start it, or where it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from axolotl_cli.clients import Client
from axolotl_cli.entries import Addition, check_name, over_http, over_stdio, suggested_name
from axolotl_cli.foresight import settings_ahead
from axolotl_cli.listening import address_of
from axolotl_cli.targets import Choice, choose
from axolotl_core.errors import ConfigurationError
from axolotl_server.settings import HttpSettings

__all__ = ["Wish", "addition_for"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What was said on the command line."""

    target: str | None
    toolsets: Sequence[str] | None
    env_file: Path | None
    name: str | None
    by_http: bool
    url: str | None
    token_variable: str | None
    variables: Sequence[str]
    with_secrets: bool


def addition_for(client: Client, wish: Wish) -> Addition:
    """Describe the server for a client, after making sure that it can be started or reached.

    Raises:
        ConfigurationError: if what was said makes no sense, the target cannot be loaded, or the settings are wrong.
    """
    _refuse_unused(wish)
    if not wish.by_http:
        choice = choose(wish.target, wish.toolsets, env_file=wish.env_file)
        settings = settings_ahead(choice)
        name = _name(wish, settings.server.name)
        return over_stdio(client, name, _words(choice, wish), wish.variables, with_secrets=wish.with_secrets)
    if wish.url is not None:
        return over_http(client, _name_of_url(wish), wish.url, wish.token_variable)
    settings = settings_ahead(choose(wish.target, wish.toolsets, env_file=wish.env_file))
    return over_http(client, _name(wish, settings.server.name), _address(settings.http), wish.token_variable)


def _refuse_unused(wish: Wish) -> None:
    if wish.by_http and wish.variables:
        raise ConfigurationError("--env is for a server that the client starts: one at a URL has its own environment")
    if not wish.by_http and (wish.url is not None or wish.token_variable is not None):
        raise ConfigurationError("--url and --token-env are for a server at a URL: say --transport http")


def _words(choice: Choice, wish: Wish) -> list[str]:
    """Write the command line; the target is named, whoever chose it, so that what was looked at is what is started."""
    toolsets = [word for name in choice.toolsets for word in ("--toolset", name)]
    env_file = [] if wish.env_file is None else ["--env-file", str(wish.env_file.absolute())]
    return ["serve", choice.target, *toolsets, *env_file]


def _name(wish: Wish, own: str) -> str:
    return suggested_name(own) if wish.name is None else check_name(wish.name)


def _name_of_url(wish: Wish) -> str:
    if wish.name is not None:
        return check_name(wish.name)
    choice = choose(wish.target, wish.toolsets, env_file=wish.env_file)
    if not choice.is_named:
        raise ConfigurationError("Nothing says what the server at that URL is called: say it with --name")
    return suggested_name(settings_ahead(choice).server.name)


def _address(http: HttpSettings) -> str:
    if http.port == 0:
        raise ConfigurationError("http.port is 0, which takes any port: say with --url where the server is")
    return address_of(http, http.port) + quote(http.path)
