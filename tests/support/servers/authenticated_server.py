"""Servers with authentication, and requests with tokens."""

import json
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import Context, prompt, resource, tool
from tests.support.peers.wire import META, VERSION, RawReply, call, message, mirrored, raw_exchange, raw_request
from tests.support.servers.serving import HttpServer, serving
from tests.support.tools import container_of

DISCOVER = message("server/discover", {"_meta": META})


@tool
async def whoami(context: Context) -> dict[str, Any]:
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
    """Create a container with the tools above and additional roles."""
    made = container_of(whoami, pay)
    made.prompts = providers.Object((greet,))
    made.resources = providers.Object((gold,))
    for name, value in roles.items():
        setattr(made, name, providers.Object(value))
    return made


def gated(
    auth: Mapping[str, Any],
    given: containers.Container | None = None,
    listener: socket.socket | None = None,
    **sections: Mapping[str, Any],
) -> AbstractAsyncContextManager[HttpServer]:
    """Serve over HTTP with the given settings."""
    return serving(container() if given is None else given, {"auth": auth, **sections}, listener)


def bearer(token: str) -> tuple[str, str]:
    """Return the header with a token."""
    return "Authorization", f"Bearer {token}"


async def discover(
    server: HttpServer, *headers: tuple[str, str], method: str = "POST", path: str = "/mcp", body: bytes = DISCOVER
) -> RawReply:
    """Send a request that every authenticated caller may send, with exactly these additional headers."""
    usual = mirrored("server/discover").items() if method == "POST" else [("MCP-Protocol-Version", VERSION)]
    data = raw_request(body if method == "POST" else b"", [*usual, *headers], method=method, path=path)
    return await raw_exchange(server.port, data)


async def called(server: HttpServer, name: str, *headers: tuple[str, str]) -> RawReply:
    data = raw_request(call(name), [*mirrored(name=name).items(), *headers])
    return await raw_exchange(server.port, data)


async def asked(
    server: HttpServer, method: str, params: Mapping[str, Any], name: str, headers: Iterable[tuple[str, str]]
) -> RawReply:
    """Call another method that names a feature."""
    body = message(method, {**params, "_meta": META})
    return await raw_exchange(server.port, raw_request(body, [*mirrored(method, name).items(), *headers]))


async def principal_of(server: HttpServer, token: str) -> Any:
    """Return the principal that a tool sees for a token."""
    reply = await called(server, "whoami", bearer(token))
    assert reply.status == 200, reply
    return json.loads(reply.body)["result"]["structuredContent"]


def challenge_of(reply: RawReply) -> dict[str, str]:
    """Parse the parameters of a challenge."""
    scheme, _, rest = reply.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    return dict(re.findall(r'(\w+)="([^"]*)"', rest))
