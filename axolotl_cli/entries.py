"""One server as a client writes it down: how it is started or reached, without what nobody else should read."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from axolotl_cli.clients import Client
from axolotl_cli.secrecy import is_secret_url, looks_secret
from axolotl_core.errors import ConfigurationError

__all__ = ["Addition", "check_name", "forgotten_variables", "over_http", "over_stdio", "suggested_name"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://[^\s/]\S*")
_TAKEN_OVER: Final = frozenset({"AXOLOTL_ENV_FILE", "AXOLOTL_TARGET", "AXOLOTL_TOOLSETS"})
"""What becomes part of the command line."""


@dataclass(frozen=True, slots=True)
class Addition:
    """What a client's file has to have."""

    section: str
    name: str
    entry: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]] = ()
    """What the client asks its user for."""

    @property
    def document(self) -> dict[str, Any]:
        """A file that has nothing else."""
        inputs = {"inputs": list(self.inputs)} if self.inputs else {}
        return {**inputs, self.section: {self.name: dict(self.entry)}}


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
    if _NAME.fullmatch(name) is None:
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
) -> Addition:
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
    return Addition(client.section, name, client.entry("stdio", {**program, "env": environment}), values.inputs)


def over_http(client: Client, name: str, url: str, token_variable: str | None = None) -> Addition:
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
    return Addition(client.section, name, client.entry("http", {"url": url, "headers": headers}), values.inputs)


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
