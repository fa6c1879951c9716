"""python -m tests.docs.peers: try what the first page says about the official SDK and FastMCP."""

import asyncio
import json
import logging
import warnings
from importlib.metadata import version
from typing import Any, Final

import httpx2
from pydantic import BaseModel

_STATELESS: Final = "2026-07-28"
_HEADERS: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_ROOT: Final = "http://127.0.0.1:8000"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": _STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


class Name(BaseModel):
    """What somebody is asked for."""

    name: str


def define_tools(server: Any, context: Any) -> Any:
    """Give a server three tools; `context` is the type of a parameter through which one can ask."""

    async def add(a: int, b: int) -> int:
        return a + b

    async def crash() -> str:
        raise ValueError("swordfish")

    async def ask(ctx: Any) -> str:
        return str(await ctx.elicit("Who?", Name))

    ask.__annotations__["ctx"] = context
    server.tool()(add)
    server.tool()(crash)
    server.tool()(ask)
    return server


async def try_out(app: Any) -> dict[str, bool]:
    """Ask a server over its ASGI application."""
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=_ROOT)
    async with app.router.lifespan_context(app), http as client:
        return {
            "handshake": (await _initialize(client)).status_code == 200,
            "stateless": not await _fails(client, "add", {"a": 1, "b": 2}),
            "any case": not await _fails(client, "ADD", {"a": 1, "b": 2}),
            "coerced": not await _fails(client, "add", {"a": "1", "b": 2}),
            "unknown ignored": not await _fails(client, "add", {"a": 1, "b": 2, "c": 3}),
            "exceptions hidden": "swordfish" not in await _call(client, "crash", {}),
            "asks in the body": "input_required" in await _call(client, "ask", {}),
            "foreign host refused": (await _initialize(client, host="evil.example")).is_error,
            "foreign origin refused": (await _initialize(client, origin="https://evil.example")).is_error,
        }


async def _initialize(client: httpx2.AsyncClient, **headers: str) -> httpx2.Response:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "docs", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return await client.post("/mcp", headers={**_HEADERS, **headers}, json=message)


async def _call(client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> str:
    headers = {"mcp-protocol-version": _STATELESS, "mcp-method": "tools/call", "mcp-name": name}
    params = {"name": name, "arguments": arguments, "_meta": _META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await client.post("/mcp", headers=_HEADERS | headers, json=message)).text


async def _fails(client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> bool:
    answer = await _call(client, name, arguments)
    return '"isError":true' in answer or '"error":' in answer


async def main() -> None:
    """Print what was found, by project."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import fastmcp
    import mcp.server.mcpserver as official_sdk

    official = define_tools(official_sdk.MCPServer("docs"), official_sdk.Context).streamable_http_app()
    fast = define_tools(fastmcp.FastMCP("docs"), fastmcp.Context).http_app()
    found = {"mcp": await try_out(official), "fastmcp": await try_out(fast)}
    print(json.dumps({"versions": {name: version(name) for name in found}, **found}))


if __name__ == "__main__":
    asyncio.run(main())
