"""Which Host and Origin a server takes that is known as mcp.example.com: the table of the page about proxies."""

import json
from typing import Final, TypeAlias

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server import HttpApp, ServerHost, make_app
from axolotl_server.asgi.http import Message, Scope
from tests.docs.tables import table

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
    ("`localhost`, as of a proxy or a shell on the same machine", (("Host", "localhost:8000"),)),
    ("the name of the upstream, which nginx sends unless told otherwise", (("Host", "axolotl"),)),
    ("a name inside of the cluster", (("Host", "axolotl.default.svc.cluster.local"),)),
    ("the address of a pod or a container", (("Host", "10.0.0.7:8000"),)),
    ("the public name with a dot behind it", (("Host", f"{_HOST}."),)),
    ("a name with an underscore, whatever the settings say", (("Host", "my_server:8000"),)),
    ("two `Host` headers", (("Host", _HOST), ("Host", _HOST))),
    ("a page of an allowed origin", (("Host", _HOST), ("Origin", "https://app.example.com"))),
    ("a page on the machine itself", (("Host", _HOST), ("Origin", "http://localhost:5173"))),
    ("a page under the server's own name that is not allowed", (("Host", _HOST), ("Origin", f"https://{_HOST}"))),
    ("a page that hides where it is from", (("Host", _HOST), ("Origin", "null"))),
)


@tool
async def greet() -> str:
    return "hello"


class Container(containers.DeclarativeContainer):
    """One tool, so that there is something to list."""

    tools = providers.List(providers.Object(greet))


async def refusals_table() -> str:
    """Send every case to a server, and write down what it answers."""
    rows = [(title, _shown(headers), str(status)) for title, headers, status, _ in await _tried()]
    return table(("", "The request says", "Answer"), rows)


async def refusal_messages() -> dict[int, str]:
    """Give what the refusals say, by status."""
    tried = await _tried()
    return {status: json.loads(body)["error"]["message"] for _, _, status, body in tried if status != 200}


async def _tried() -> list[tuple[str, _Headers, int, bytes]]:
    flags = {"http": {"allowed_hosts": [_HOST], "allowed_origins": ["https://app.example.com"]}}
    async with ServerHost(Container(), flags=flags) as host:
        app = make_app(host)
        return [(title, headers, *await _ask(app, headers)) for title, headers in _CASES]


def _shown(headers: _Headers) -> str:
    """Show the headers that the case is about: the last one, as often as it is sent."""
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
