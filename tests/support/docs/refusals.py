"""The table of Host and Origin checks on the page about reverse proxies, with the answers of a real server."""

import json
from typing import Final, TypeAlias

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server import HttpApp, ServerHost, make_app
from axolotl_server.http.asgi import Message, Scope
from tests.support.docs.tables import table

_HOST: Final = "mcp.example.com"
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": LATEST_STATELESS_REVISION.name,
    "Mcp-Method": "tools/list",
}
_META: Final = {PROTOCOL_VERSION_KEY: LATEST_STATELESS_REVISION.name, CLIENT_CAPABILITIES_KEY: {}}
_BODY: Final = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": _META}})

_Headers: TypeAlias = tuple[tuple[str, str], ...]

_CASES: Final[tuple[tuple[str, _Headers], ...]] = (
    ("the public name, with any port", (("Host", f"{_HOST}:8443"),)),
    ("`localhost`, for example from a shell on the same machine", (("Host", "localhost:8000"),)),
    ("the upstream name, which nginx sends by default", (("Host", "axolotl"),)),
    ("a cluster-internal name", (("Host", "axolotl.default.svc.cluster.local"),)),
    ("the address of a pod or container", (("Host", "10.0.0.7:8000"),)),
    ("the public name with a trailing dot", (("Host", f"{_HOST}."),)),
    ("a name with an underscore, even if it is allowed", (("Host", "my_server:8000"),)),
    ("two `Host` headers", (("Host", _HOST), ("Host", _HOST))),
    ("a page at an allowed origin", (("Host", _HOST), ("Origin", "https://app.example.com"))),
    ("a page on localhost", (("Host", _HOST), ("Origin", "http://localhost:5173"))),
    ("a page at the server's own name, if not allowed", (("Host", _HOST), ("Origin", f"https://{_HOST}"))),
    ("an opaque origin", (("Host", _HOST), ("Origin", "null"))),
)


@tool
async def greet() -> str:
    return "hello"


class Container(containers.DeclarativeContainer):
    """A server with one tool."""

    tools = providers.List(providers.Object(greet))


async def refusals_table() -> str:
    """Send every case to a server and note the status."""
    rows = [(title, _shown(headers), str(status)) for title, headers, status, _ in await _tried()]
    return table(("Case", "Request", "Status"), rows)


async def refusal_messages() -> dict[int, str]:
    """Return the messages of refusals, by status."""
    tried = await _tried()
    return {status: json.loads(body)["error"]["message"] for _, _, status, body in tried if status != 200}


async def _tried() -> list[tuple[str, _Headers, int, bytes]]:
    flags = {"http": {"allowed_hosts": [_HOST], "allowed_origins": ["https://app.example.com"]}}
    async with ServerHost(Container(), flags=flags) as host:
        app = make_app(host)
        return [(title, headers, *await _ask(app, headers)) for title, headers in _CASES]


def _shown(headers: _Headers) -> str:
    """Show the header that the case is about, as often as it is sent."""
    return ", ".join(f"`{name}: {value}`" for name, value in headers if name == headers[-1][0])


async def _ask(app: HttpApp, headers: _Headers) -> tuple[int, bytes]:
    pairs = [(name.lower().encode(), value.encode()) for name, value in (*headers, *_HEADERS.items())]
    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": pairs}
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": _BODY}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)
