"""The examples of health checks, and of a server with its own transport."""

import asyncio
import importlib
import json
from typing import Any

import httpx2
import pytest

from axolotl_server import ServerHost
from axolotl_server.health import Health
from tests.support.peers.wire import call, connection
from tests.support.servers.serving import until


async def test_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readiness depends on the database, and startup on the prices."""
    container: Any = importlib.import_module("healthy").Container()
    monkeypatch.setattr("axolotl_server.health._CACHE_SECONDS", 0)
    async with ServerHost(container) as host:
        health, database = Health(host), container.database()
        database.loaded = False
        assert (await health.startup()).state == "failed"
        assert (await health.readiness()).state == "failed"
        database.loaded = True
        assert (await health.readiness()).state == "ok"
        for lag, state in ((10.0, "degraded"), (100.0, "failed"), (0.0, "ok")):
            database.lag_seconds = lag
            assert (await health.readiness()).state == state
        assert (await health.liveness()).state == "ok"


async def test_own_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example serves JSON lines over TCP, and answers what was sent before the client closes."""
    servers: list[asyncio.Server] = []
    start_server = asyncio.start_server

    async def start(*arguments: Any, **options: Any) -> asyncio.Server:
        servers.append(await start_server(*arguments, **options))
        return servers[0]

    monkeypatch.setattr(asyncio, "start_server", start)
    serving = asyncio.ensure_future(importlib.import_module("own_transport").main(0))
    await until(lambda: servers or serving.done())
    async with connection(servers[0].sockets[0].getsockname()[1]) as (reader, writer):
        writer.write(call("greet", {"name": "Ada"}, id=7) + b"\n")
        writer.write_eof()
        reply = json.loads(await reader.readline())
        assert await reader.read() == b""
    assert (reply["id"], reply["result"]["content"][0]["text"]) == (7, "Hello, Ada!")
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


async def test_mounted() -> None:
    """The server in FastAPI takes the user of the host's session."""
    mounted = importlib.import_module("mounted")
    transport = httpx2.ASGITransport(mounted.app)
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    reaching = httpx2.AsyncClient(transport=transport, base_url="http://localhost")
    async with mounted.app.router.lifespan_context(mounted.app), reaching as client:
        assert (await client.get("/")).json() == "The tools are at /tools/mcp"
        assert (await client.post("/tools/mcp", json=message)).status_code == 401
        client.cookies.set("session", "cookie-of-ada")
        answer = (await client.post("/tools/mcp", json=message)).json()
    assert answer["result"]["serverInfo"]["name"] == "shop"
