"""Servers behind a gate, and requests with a token."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from dependency_injector import containers, providers

from axolotl_core import ToolContext, prompt, resource, tool
from axolotl_server import ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.http_server.serve import reply_at_once
from tests.support.peers.wire import META, VERSION, RawReply, call, message, mirrored, raw_exchange, raw_request
from tests.support.servers.serving import HttpServer
from tests.support.tools import container_of

DISCOVER = message("server/discover", {"_meta": META})


@tool
async def whoami(context: ToolContext) -> dict[str, Any]:
    """Tell who calls."""
    one = context.principal
    return {
        "subject": one.subject,
        "tenant": one.tenant,
        "issuer": one.issuer,
        "scopes": sorted(one.scopes),
        "roles": sorted(one.roles),
        "claims": dict(one.claims),
    }


@tool(scopes=frozenset({"payments", "read"}))
async def pay() -> str:
    """Pay something."""
    return "paid"


@prompt(scopes=frozenset({"letters"}))
async def greet() -> str:
    """Greet somebody."""
    return "Dear Ada"


@resource("vault://gold", scopes=frozenset({"vault"}))
async def gold() -> str:
    """Show the gold."""
    return "much"


def container(**roles: Any) -> containers.DynamicContainer:
    """Give a container with the tools above, and more roles."""
    made = container_of(whoami, pay)
    made.prompts = providers.Object((greet,))
    made.resources = providers.Object((gold,))
    for name, value in roles.items():
        setattr(made, name, providers.Object(value))
    return made


def listening() -> socket.socket:
    """Take a free port."""
    # The protocol is named, since asyncio switches Nagle's algorithm off only then.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


@asynccontextmanager
async def gated(
    auth: Mapping[str, Any],
    given: containers.Container | None = None,
    listener: socket.socket | None = None,
    **sections: Mapping[str, Any],
) -> AsyncIterator[HttpServer]:
    """Serve over HTTP with everything that the settings ask for."""
    flags = {"auth": auth, **sections}
    async with ServerHost(container() if given is None else given, flags=flags) as host:
        app = make_app(host, reply_at_once)
        listener = listener or listening()
        config = uvicorn.Config(
            app,
            http="httptools",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            yield HttpServer(host, app, listener.getsockname()[1])
        finally:
            app.sessions.end_streams()
            server.should_exit = True
            await running


def bearer(token: str) -> tuple[str, str]:
    """Give the header that carries a token."""
    return "Authorization", f"Bearer {token}"


async def discover(
    server: HttpServer, *headers: tuple[str, str], method: str = "POST", path: str = "/mcp", body: bytes = DISCOVER
) -> RawReply:
    """Send a request that everybody may make who may make any, with exactly these headers besides."""
    usual = mirrored("server/discover").items() if method == "POST" else [("MCP-Protocol-Version", VERSION)]
    data = raw_request(body if method == "POST" else b"", [*usual, *headers], method=method, path=path)
    return await raw_exchange(server.port, data)


async def called(server: HttpServer, name: str, *headers: tuple[str, str]) -> RawReply:
    """Call a tool."""
    data = raw_request(call(name), [*mirrored(name=name).items(), *headers])
    return await raw_exchange(server.port, data)


async def asked(
    server: HttpServer, method: str, params: Mapping[str, Any], name: str, headers: Iterable[tuple[str, str]]
) -> RawReply:
    """Use any other method that names something."""
    body = message(method, {**params, "_meta": META})
    return await raw_exchange(server.port, raw_request(body, [*mirrored(method, name).items(), *headers]))


async def principal_of(server: HttpServer, token: str) -> Any:
    """Ask a tool whom it takes the holder of a token for."""
    reply = await called(server, "whoami", bearer(token))
    assert reply.status == 200, reply
    return json.loads(reply.body)["result"]["structuredContent"]


def challenge_of(reply: RawReply) -> dict[str, str]:
    """Read the parameters of a challenge."""
    scheme, _, rest = reply.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    return dict(re.findall(r'(\w+)="([^"]*)"', rest))
