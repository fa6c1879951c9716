"""What a person is told when an HTTP server is ready: where it is, and a call to try."""

import logging
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer

from axolotl_cli.serving.address import is_everywhere
from axolotl_cli.text import counted, counts_in, enumeration
from axolotl_cli.views.schemas import sample_arguments
from axolotl_core.features.spec import ToolSpec
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server.host import ServerHost
from axolotl_server.http.assembly import is_authenticated

_log = logging.getLogger("axolotl")

_PLAIN: Final = re.compile(r"[\x21-\x7e]+")


def invite(host: ServerHost, url: str) -> None:
    """Write the invitation to the standard error stream."""
    specs = [binding.spec for binding in host.catalogue.bindings()]
    offer = enumeration(counted(counts_in(host)))
    if host.settings.log.format == "json":
        _log.info("%s serves %s at %s", host.settings.server.name, offer, url)
        return
    name = typer.style(host.settings.server.name, bold=True)
    typer.echo(f"{name} serves {offer} at {typer.style(url, fg='cyan', underline=True)}\n", err=True)
    if is_everywhere(host.settings.http) and not host.settings.http.allowed_hosts:
        typer.echo(
            "Requests for another host than localhost are refused: name yours in http.allowed_hosts.\n", err=True
        )
    trial = curl_call(url, specs, _list_of(host), is_authenticated(host))
    typer.echo(f"Try it:\n\n{trial}\n\nPress Ctrl-C to stop.", err=True)


def curl_call(url: str, specs: list[ToolSpec], instead: str = "tools/list", needs_token: bool = False) -> str:
    """Write a command that calls one of the tools, or does something else where none can be tried."""
    method, params, extra = _trial(specs) or (instead, {}, {})
    meta = {PROTOCOL_VERSION_KEY: LATEST_STATELESS_REVISION.name, CLIENT_CAPABILITIES_KEY: {}}
    body = encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}})
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_STATELESS_REVISION.name,
        "Mcp-Method": method,
        **extra,
        **({"Authorization": "Bearer YOUR-TOKEN"} if needs_token else {}),
    }
    options = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    return " \\\n    ".join([f"  curl {shlex.quote(url)}", *options, f"-d {shlex.quote(body.decode())}"])


def _list_of(host: ServerHost) -> str:
    """Choose the list to show where no tool can be tried: a server has the methods of what it offers only."""
    return next(f"{kind}/list" for kind in ("tools", "prompts", "resources") if kind in host.roles.offers)


def _trial(specs: list[ToolSpec]) -> tuple[str, dict[str, Any], dict[str, str]] | None:
    """Choose the method to try, its parameters and the headers that repeat them."""
    for spec in sorted(_harmless(specs), key=lambda spec: not spec.tool.annotations.read_only):
        arguments = sample_arguments(spec)
        headers = None if arguments is None else _mirrored(spec, arguments)
        if headers is not None:
            return "tools/call", {"name": spec.name, "arguments": arguments}, headers
    return None


def _harmless(specs: list[ToolSpec]) -> Iterator[ToolSpec]:
    return (spec for spec in specs if not spec.tool.annotations.destructive)


def _mirrored(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, str] | None:
    """Give the headers of a call, None where one would need an encoding that nobody can read."""
    values = {parameter.header.decode(): parameter.value_in(arguments) for parameter in spec.header_parameters}
    headers = {"Mcp-Name": spec.name, **{name: _text(value) for name, value in values.items() if value is not None}}
    return headers if all(map(_PLAIN.fullmatch, headers.values())) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()
