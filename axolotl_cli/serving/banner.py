"""The message that an HTTP server prints when it is ready: its URL, and a call to try."""

import logging
import re
import shlex
from typing import Any, Final

import typer

from axolotl_cli.serving.address import listening_url, listens_everywhere
from axolotl_cli.serving.console import console_of
from axolotl_cli.text import counted, counts_in, enumeration, print_status
from axolotl_cli.views.schemas import sample_arguments
from axolotl_core.features.spec import ToolSpec
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server.host import ServerHost
from axolotl_server.http.assembly import is_authenticated

_log = logging.getLogger("axolotl")

_VISIBLE_ASCII: Final = re.compile(r"[\x21-\x7e]+")


def print_banner(host: ServerHost, url: str) -> None:
    """Print the banner, or log one line if the log is JSON."""
    console = console_of(host)
    address = listening_url(host.settings.http, url)
    specs = [binding.spec for binding in host.assembly.tools.bindings()]
    offer = enumeration(counted(counts_in(host)))
    if host.settings.log.format == "json":
        _log.info("%s serves %s at %s", host.settings.server.name, offer, address)
        if console is not None:
            _log.info("console: %s", console.link(url))
        return
    name = typer.style(host.settings.server.name, bold=True)
    print_status(f"{name} serves {offer} at {typer.style(address, fg='cyan', underline=True)}\n")
    if console is not None:
        print_status(f"Console: {typer.style(console.link(url), fg='cyan', underline=True)}\n")
    is_public = host.settings.http.allowed_hosts or host.settings.auth.resource is not None
    if listens_everywhere(host.settings.http) and not is_public:
        print_status("Requests for other hosts than localhost are refused. Add your host to http.allowed_hosts.\n")
    listing = next(f"{kind}/list" for kind in ("tools", "prompts", "resources") if kind in host.roles.offers)
    command = curl_command(url, specs, listing, is_authenticated(host))
    print_status(f"Try it:\n\n{command}\n\nPress Ctrl-C to stop.")


def curl_command(url: str, specs: list[ToolSpec], fallback: str = "tools/list", needs_token: bool = False) -> str:
    """Return a curl command that calls one of the tools, or another method if none can be tried."""
    method, params, extra = _sample_call(specs) or (fallback, {}, {})
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


def _sample_call(specs: list[ToolSpec]) -> tuple[str, dict[str, Any], dict[str, str]] | None:
    """Choose a method, its parameters, and the headers that mirror them."""
    harmless = [spec for spec in specs if not spec.tool.annotations.destructive]
    for spec in sorted(harmless, key=lambda spec: not spec.tool.annotations.read_only):
        arguments = sample_arguments(spec)
        if arguments is None:
            continue
        headers = {"Mcp-Name": spec.name}
        for parameter in spec.header_parameters:
            value = parameter.value_in(arguments)
            if value is not None:
                headers[parameter.header.decode()] = value if isinstance(value, str) else encode(value).decode()
        if all(map(_VISIBLE_ASCII.fullmatch, headers.values())):  # another value would need an encoding
            return "tools/call", {"name": spec.name, "arguments": arguments}, headers
    return None
