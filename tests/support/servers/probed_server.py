"""An in-process server with all of its routes, queried like a probe does."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core.health import HealthStatus, IHealthCheck
from axolotl_server import ServerHost
from axolotl_server.http.server.serve import serve_http
from tests.support.peers.wire import RawReply, raw_exchange, raw_request
from tests.support.tools import Echo, container_of


class Found(IHealthCheck):
    """A check with a result that the test sets, which counts its runs."""

    def __init__(self, name: str = "found", found: Any = None, **options: Any) -> None:
        self.name = name
        self.found = found
        self.looks = 0
        for option, value in options.items():
            setattr(self, option, value)

    async def check(self) -> HealthStatus | None:
        self.looks += 1
        if isinstance(self.found, BaseException):
            raise self.found
        status: HealthStatus | None = self.found
        return status


class Held(Found):
    """A check that blocks until the test releases it."""

    def __init__(self, name: str = "held", **options: Any) -> None:
        super().__init__(name, **options)
        self.begun = asyncio.Event()
        self.release = asyncio.Event()

    async def check(self) -> HealthStatus | None:
        self.begun.set()
        await self.release.wait()
        return await super().check()


class Probed:
    """A server and its port."""

    def __init__(self, host: ServerHost, port: int) -> None:
        self.host = host
        self.port = port

    async def ask(self, path: str = "/readyz", *, method: str = "GET", name: str = "10.1.2.3") -> RawReply:
        """Request a route, with a host name that the server does not know."""
        return await raw_exchange(self.port, raw_request(b"", [], method=method, path=path, host=name))

    async def told(self, path: str = "/readyz") -> tuple[int, Any]:
        """Request a route and return the status and the body."""
        reply = await self.ask(path)
        return reply.status, json.loads(reply.body)

    async def checks(self, path: str = "/readyz") -> dict[str, str]:
        """Request a route and return the status of each check."""
        _, content = await self.told(path)
        return {name: found["status"] for name, found in content["checks"].items()}


@asynccontextmanager
async def probed(
    *checks: Any,
    tools: Sequence[Any] = (),
    settings: Mapping[str, Any] | None = None,
    cache_seconds: float = 0,
    stall_seconds: float = 60,
    **roles: Any,
) -> AsyncIterator[Probed]:
    """Serve checks until the block ends; by default, their results are not cached."""
    container = container_of(Echo(), *tools)
    for role, value in {"health_checks": checks, **roles}.items():
        setattr(container, role, providers.Object(value))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("axolotl_server.health._CACHE_SECONDS", cache_seconds)
        patch.setattr("axolotl_server.host.STALL_SECONDS", stall_seconds)
        async with ServerHost(container, flags=settings or {}) as host:
            listener = socket.create_server(("127.0.0.1", 0))
            serving = asyncio.ensure_future(serve_http(host, listener))
            try:
                yield Probed(host, listener.getsockname()[1])
            finally:
                host.stop_signal.set()
                await serving
