"""What a client has to write down for a target: how to start it, or where it is."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from axolotl_cli.clients.client import Client
from axolotl_cli.options import Transport
from axolotl_cli.runtime import settings_ahead
from axolotl_cli.serving.address import address_of
from axolotl_cli.target import ChosenTarget, resolve_target
from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.transports import HttpSettings

_NAME: Final = re.compile(
    r"(?:^|_)(?:api_?key|key|keys|token|tokens|secret|secrets|pass|passwd|password|passphrase|pwd|pin|credential|"
    r"credentials|bearer|authorization|cookie|jwt|dsn)$",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|axk|npm|pypi|hf)[-_][\w-]{8,}"
    r"|eyJ[\w-]{8,}\.[\w-]+\.?[\w-]*|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{30,}|Bearer\s+\S+|-----BEGIN .*",
    re.IGNORECASE | re.DOTALL,
)
_REFERENCE: Final = re.compile(r"\$\{[^}]+\}")


def looks_secret(name: str, value: str) -> bool:
    """Tell whether a variable is called like a secret, or its value has the form of one."""
    if not value or _REFERENCE.fullmatch(value):
        return False
    return bool(_NAME.search(name) or _VALUE.match(value.strip()) or is_secret_url(value))


def is_secret_url(value: str) -> bool:
    """Tell whether a URL has a password in it, or something in its query that is called like a secret."""
    try:
        parts = urlsplit(value)
        if parts.password:
            return True
    except ValueError:
        return False
    names = (pair.partition("=")[0] for pair in parts.query.split("&"))
    return bool(parts.scheme and any(_NAME.search(name.replace("-", "_")) for name in names))


_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://[^\s/]\S*")
_TAKEN_OVER: Final = frozenset({"AXOLOTL_ENV_FILE", "AXOLOTL_TARGET", "AXOLOTL_TOOLSETS"})
"""What becomes part of the command line."""


@dataclass(frozen=True, slots=True)
class ClientEntry:
    """One server in a client's configuration file."""

    section: str
    name: str
    server: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]] = ()
    """Values that the client asks its user for."""

    @property
    def document(self) -> dict[str, Any]:
        """A file with this entry only."""
        inputs = {"inputs": list(self.inputs)} if self.inputs else {}
        return {**inputs, self.section: {self.name: dict(self.server)}}


@dataclass(slots=True)
class _Values:
    """Values that are written, or asked for where they must not be."""

    client: Client
    server: str
    inputs: list[dict[str, Any]] = field(default_factory=list)

    def refer(self, variable: str, *, secret: bool) -> str:
        reference = self.client.refer(variable, self.server)
        if self.client.asks:
            identifier = self.client.input_id(variable, self.server)
            description = f"{variable} for {self.server}"
            self.inputs.append(
                {"type": "promptString", "id": identifier, "description": description, "password": secret}
            )
        return reference


def check_name(name: str) -> str:
    """Make sure that every client takes the name of a server.

    Raises:
        ConfigurationError: if one would not.
    """
    if _SERVER_NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{name!r} is no name for a server: use letters, digits, - and _, at most 64 of them")
    return name


def suggested_name(name: str) -> str:
    """Make a name that every client takes out of what a server calls itself."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:64] or "axolotl"


def over_stdio(
    client: Client,
    name: str,
    words: Sequence[str],
    variables: Sequence[str] = (),
    *,
    with_secrets: bool = False,
) -> ClientEntry:
    """Describe a server that the client starts, by the words behind `axolotl`.

    The interpreter that runs now is named by its path, so that neither the client's directory nor its PATH matters;
    with -P it imports nothing from that directory either, which may be a stranger's.

    Raises:
        ConfigurationError: if a variable is none, looks like a secret, or the client cannot ask for it.
    """
    values = _Values(client, name)
    environment = dict(_variable(values, one, with_secrets) for one in variables)
    program = {
        "command": os.path.abspath(sys.executable),
        "args": ["-P", "-m", "axolotl_cli", "--directory", str(Path.cwd()), *words],
    }
    return ClientEntry(client.section, name, client.entry("stdio", {**program, "env": environment}), values.inputs)


def over_http(client: Client, name: str, url: str, token_variable: str | None = None) -> ClientEntry:
    """Describe a server that runs elsewhere; the variable holds the token that it wants, if it wants one.

    Raises:
        ConfigurationError: if the URL is none or has a secret in it, or the client takes no URLs.
    """
    if _URL.fullmatch(url) is None:
        raise ConfigurationError("--url wants a URL as https://mcp.example.com/mcp")
    if is_secret_url(url):
        raise ConfigurationError("The URL has a secret in it: leave it out, and name a variable with --token-env")
    values = _Values(client, name)
    if token_variable is not None and _VARIABLE.fullmatch(token_variable) is None:
        raise ConfigurationError("--token-env wants the name of a variable, as ACME_TOKEN")
    token = None if token_variable is None else values.refer(token_variable, secret=True)
    headers = None if token is None else {"Authorization": f"Bearer {token}"}
    return ClientEntry(client.section, name, client.entry("http", {"url": url, "headers": headers}), values.inputs)


def forgotten_variables(given: Sequence[str]) -> list[str]:
    """Name the variables that hold here, and will not where the client starts the server."""
    named = {one.partition("=")[0] for one in given} | _TAKEN_OVER
    return sorted(name for name in os.environ if name.startswith("AXOLOTL_") and name not in named)


def _variable(values: _Values, text: str, with_secrets: bool) -> tuple[str, str]:
    name, said, value = text.partition("=")
    if _VARIABLE.fullmatch(name) is None:
        raise ConfigurationError("--env wants NAME=VALUE, or NAME for a value that is not written down")
    if not said:
        return name, values.refer(name, secret=looks_secret(name, "-"))
    if looks_secret(name, value) and not with_secrets:
        raise ConfigurationError(f"The value of {name} looks like a secret: {_instead(values.client, name)}")
    return name, value


def _instead(client: Client, name: str) -> str:
    """Say how a secret gets to the server without standing in the file."""
    if client.reference is None:
        return "have the server read it from a file (a setting that ends in _FILE), or say --with-secrets"
    where = "asks for it" if client.asks else "takes it from its environment"
    return f"say --env {name} alone, so that {client.title} {where}, or --with-secrets to write it down"


@dataclass(frozen=True, slots=True)
class EntryRequest:
    """What was said on the command line."""

    target: str | None
    toolsets: Sequence[str] | None
    env_file: Path | None
    name: str | None
    transport: Transport | None
    url: str | None
    token_variable: str | None
    variables: Sequence[str]
    with_secrets: bool

    @property
    def is_http(self) -> bool:
        """Whether the client finds the server at a URL, instead of starting it."""
        return self.url is not None if self.transport is None else self.transport is Transport.HTTP


def entry_for(client: Client, request: EntryRequest) -> ClientEntry:
    """Describe the server for a client, after making sure that it can be started or reached.

    Raises:
        ConfigurationError: if what was said makes no sense, the target cannot be loaded, or the settings are wrong.
    """
    _refuse_unused(request)
    if not request.is_http:
        choice = resolve_target(request.target, request.toolsets, env_file=request.env_file)
        settings = settings_ahead(choice)
        name = _name(request, settings.server.name)
        return over_stdio(client, name, _words(choice, request), request.variables, with_secrets=request.with_secrets)
    if request.url is not None:
        return over_http(client, _name_of_url(request), request.url, request.token_variable)
    settings = settings_ahead(resolve_target(request.target, request.toolsets, env_file=request.env_file))
    return over_http(client, _name(request, settings.server.name), _address(settings.http), request.token_variable)


def _refuse_unused(request: EntryRequest) -> None:
    if request.is_http and request.variables:
        raise ConfigurationError("--env is for a server that the client starts: one at a URL has its own environment")
    if not request.is_http and (request.url is not None or request.token_variable is not None):
        raise ConfigurationError("--url and --token-env are for a server at a URL: say --transport http")


def _words(choice: ChosenTarget, request: EntryRequest) -> list[str]:
    """Write the command line; the target is named, whoever chose it, so that what was looked at is what is started."""
    toolsets = [word for name in choice.toolsets for word in ("--toolset", name)]
    env_file = [] if request.env_file is None else ["--env-file", str(request.env_file.absolute())]
    return ["serve", choice.target, *toolsets, *env_file]


def _name(request: EntryRequest, own: str) -> str:
    return suggested_name(own) if request.name is None else check_name(request.name)


def _name_of_url(request: EntryRequest) -> str:
    if request.name is not None:
        return check_name(request.name)
    choice = resolve_target(request.target, request.toolsets, env_file=request.env_file)
    if not choice.is_named:
        raise ConfigurationError("Nothing says what the server at that URL is called: say it with --name")
    return suggested_name(settings_ahead(choice).server.name)


def _address(http: HttpSettings) -> str:
    if http.port == 0:
        raise ConfigurationError("http.port is 0, which takes any port: say with --url where the server is")
    return address_of(http, http.port) + quote(http.path)
