"""One server in the configuration of a client: how to start it, or its URL."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from axolotl_cli.clients.client import KnownClient
from axolotl_cli.options import VARIABLES, FileOptions, Transport
from axolotl_cli.runtime import load_server_settings
from axolotl_cli.serving.address import address_of
from axolotl_cli.target import ChosenTarget, resolve_target
from axolotl_core.errors import ConfigurationError

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
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://[^\s/]\S*")
_ON_COMMAND_LINE: Final = {*VARIABLES} - {"AXOLOTL_LOCKED"}
"""Variables whose values become part of the command line."""


def looks_secret(name: str, value: str) -> bool:
    """Tell whether the name of a variable, or its value, looks like a secret."""
    if not value or _REFERENCE.fullmatch(value):
        return False
    return bool(_NAME.search(name) or _VALUE.match(value.strip()) or is_secret_url(value))


def is_secret_url(value: str) -> bool:
    """Tell whether a URL contains a password, or a query parameter that looks like a secret."""
    try:
        parts = urlsplit(value)
        if parts.password:
            return True
    except ValueError:
        return False
    names = (pair.partition("=")[0] for pair in parts.query.split("&"))
    return bool(parts.scheme and any(_NAME.search(name.replace("-", "_")) for name in names))


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


def over_stdio(client: KnownClient, name: str, arguments: Sequence[str], request: "EntryRequest") -> ClientEntry:
    """Describe a server that the client starts with these arguments of `axolotl`.

    The entry has the absolute path of this interpreter, so that neither the client's working directory nor its PATH
    matters. With -P, nothing is imported from that directory, which others may be able to write to. With uv, the entry
    has no path of an environment, which may be created again elsewhere, and no path at all in a file that is shared.
    """
    environment: dict[str, str] = {}
    inputs: list[dict[str, Any]] = []
    for text in request.variables:
        variable, separator, value = text.partition("=")
        if _VARIABLE.fullmatch(variable) is None:
            raise ConfigurationError("--env needs NAME=VALUE, or NAME for a value that is not written to the file")
        if separator and looks_secret(variable, value) and not request.with_secrets:
            way = "asks for it" if client.asks else "takes it from its environment"
            remedy = f"use --env {variable} without a value, so that {client.title} {way}"
            option = "--with-secrets to write it"
            if client.reference is None:
                remedy, option = "let the server read it from a file (a setting that ends in _FILE)", "--with-secrets"
            raise ConfigurationError(f"The value of {variable} looks like a secret: {remedy}, or add {option}")
        if not separator:
            value, asked = _reference(client, variable, name, secret=looks_secret(variable, "-"))
            inputs += asked
        environment[variable] = value
    directory = str(Path.cwd())
    if request.with_uv:
        command, start = "uv", ["run", *(() if request.is_shared else ("--directory", directory)), "axolotl"]
    else:
        command, start = os.path.abspath(sys.executable), ["-P", "-m", "axolotl_cli", "--directory", directory]
    server = client.entry("stdio", {"command": command, "args": [*start, *arguments], "env": environment})
    return ClientEntry(client.section, name, server, inputs)


def over_http(client: KnownClient, name: str, url: str, token_variable: str | None = None) -> ClientEntry:
    """Describe a server at a URL; the variable has its token, if it needs one."""
    if _URL.fullmatch(url) is None:
        raise ConfigurationError("--url needs a URL, for example https://mcp.example.com/mcp")
    if is_secret_url(url):
        raise ConfigurationError("The URL contains a secret: remove it, and name a variable with --token-env")
    if token_variable is None:
        return ClientEntry(client.section, name, client.entry("http", {"url": url}))
    if _VARIABLE.fullmatch(token_variable) is None:
        raise ConfigurationError("--token-env needs the name of a variable, for example ACME_TOKEN")
    token, inputs = _reference(client, token_variable, name, secret=True)
    entry = client.entry("http", {"url": url, "headers": {"Authorization": f"Bearer {token}"}})
    return ClientEntry(client.section, name, entry, inputs)


def _reference(client: KnownClient, variable: str, server: str, *, secret: bool) -> tuple[str, list[dict[str, Any]]]:
    """Refer to a value that is not in the file; if the client asks its user for it, return the question too."""
    reference, identifier = client.refer(variable, server), client.input_id(variable, server)
    text = f"{variable} for {server}"
    asked = {"type": "promptString", "id": identifier, "description": text, "password": secret}
    return reference, [asked] if client.asks else []


def missing_variables(variables: Sequence[str]) -> list[str]:
    """Name the variables of this environment that the server does not have when the client starts it."""
    named = {one.partition("=")[0] for one in variables} | _ON_COMMAND_LINE
    return sorted(name for name in os.environ if name.startswith("AXOLOTL_") and name not in named)


@dataclass(frozen=True, slots=True)
class EntryRequest:
    """The options of `install` that describe a server."""

    target: str | None
    toolsets: Sequence[str] | None
    files: FileOptions
    name: str | None
    transport: Transport | None
    url: str | None
    token_variable: str | None
    variables: Sequence[str]
    with_secrets: bool
    with_uv: bool
    is_shared: bool
    """Whether several people share the file, so that the directory is the one where the client runs."""

    @property
    def is_http(self) -> bool:
        """Whether the client finds the server at a URL, instead of starting it."""
        return self.url is not None if self.transport is None else self.transport is Transport.HTTP


def entry_for(client: KnownClient, request: EntryRequest) -> ClientEntry:
    """Describe a server for a client, after loading its target and settings to find mistakes."""
    if request.is_http and request.variables:
        raise ConfigurationError("--env is for a server that the client starts; one at a URL has its own environment")
    if not request.is_http and (request.url is not None or request.token_variable is not None):
        raise ConfigurationError("--url and --token-env are for a server at a URL: use --transport http")
    if request.url is not None and request.name is not None:  # nothing of the target is needed
        return over_http(client, _checked(request.name), request.url, request.token_variable)
    is_required = request.url is None
    target = resolve_target(request.target, request.toolsets, files=request.files, is_required=is_required)
    if not target.name:
        raise ConfigurationError("The server at this URL needs a name: use --name")
    settings = load_server_settings(target)
    own_name = re.sub(r"[^A-Za-z0-9_-]+", "-", settings.server.name).strip("-")[:64]
    name = (own_name or "axolotl") if request.name is None else _checked(request.name)
    if not request.is_http:
        return over_stdio(client, name, _arguments(target), request)
    http = settings.http
    if request.url is None and http.port == 0:
        raise ConfigurationError("http.port is 0, so the port is not known: use --url")
    url = request.url or address_of(http, http.port) + quote(http.path)
    return over_http(client, name, url, request.token_variable)


def _checked(name: str) -> str:
    """Return the name of a server if every client accepts it; otherwise raise an error."""
    if _SERVER_NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{name!r} is not a valid server name: use up to 64 letters, digits, - and _")
    return name


def _arguments(target: ChosenTarget) -> list[str]:
    """Name the target even if it is the default one, so that the client starts what was loaded here."""
    files = zip(("--env-file", "--settings", "--profile"), target.files_as_text, strict=True)
    options = [*(("--toolset", name) for name in target.toolsets), *files]
    return ["serve", target.name, *(word for option, value in options if value for word in (option, value))]
