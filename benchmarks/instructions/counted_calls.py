"""The process that valgrind counts: one server after the other, which another process calls over a socket."""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvicorn
import uvloop

from axolotl_server import ServerHost
from axolotl_server.http.server.serve import serve_http
from axolotl_server.transports.pipes import StandardStreams
from axolotl_server.transports.stdio import serve_stdio
from benchmarks import wire
from benchmarks.instructions.caller import Caller
from benchmarks.instructions.comparison import FLOOR, LAYERS, SESSION, STATELESS, STDIO
from benchmarks.instructions.counted_layers import be_patient, layered_hosts, token
from benchmarks.servers import floor
from benchmarks.servers.axolotl_add import Container

WARM_UP: Final = 300
CALLS: Final = 500
SCENARIOS: Final = (FLOOR, STATELESS, SESSION, STDIO, *LAYERS)
_FIRST_ID: Final = 100_000

Play = Callable[[int], Coroutine[Any, Any, bytes]]
"""Makes a number of calls, one after the other, and returns the last reply."""
Served = Callable[[Caller], AbstractAsyncContextManager[Play]]
"""Starts a server and warms it up."""


@asynccontextmanager
async def _floor(caller: Caller) -> AsyncIterator[Play]:
    config = uvicorn.Config(floor.app, http="httptools", lifespan="off", log_config=None, access_log=False)
    server, listener = uvicorn.Server(config), _listener()
    port, task = listener.getsockname()[1], asyncio.get_running_loop().create_task(server.serve([listener]))
    yield await _warm(caller, port, wire.stateless_calls(port, _FIRST_ID, WARM_UP))
    server.should_exit = True
    await task


@asynccontextmanager
async def _stateless(host: ServerHost, caller: Caller) -> AsyncIterator[Play]:
    async with _over_http(host) as port:
        credentials = {"Authorization": f"Bearer {token()}"} if host.settings.auth.is_used else None
        yield await _warm(caller, port, wire.stateless_calls(port, _FIRST_ID, WARM_UP, credentials))


@asynccontextmanager
async def _in_session(host: ServerHost, caller: Caller) -> AsyncIterator[Play]:
    async with _over_http(host) as port:
        opened = await caller.call(port, [wire.session_initialize(port)], 1)
        session = opened.split(b"mcp-session-id: ")[1].split(b"\r\n")[0].decode()
        await caller.call(port, [wire.session_initialized(port, session)], 1)
        yield await _warm(caller, port, wire.session_calls(port, session, _FIRST_ID, WARM_UP))


@asynccontextmanager
async def _over_stdio(host: ServerHost, caller: Caller) -> AsyncIterator[Play]:
    streams = StandardStreams(*(os.dup(stream.fileno()) for stream in caller.stdio))
    async with _running(host, lambda: serve_stdio(host.handler, host.settings, streams, host.stop_signal)):
        await caller.call(None, [wire.stdio_handshake()], 1)
        await caller.call(None, [wire.stdio_initialized()], 1)
        yield await _warm(caller, None, wire.stdio_calls(_FIRST_ID, WARM_UP))


@asynccontextmanager
async def _over_http(host: ServerHost) -> AsyncIterator[int]:
    listener = _listener()
    async with _running(host, partial(serve_http, host, listener)):
        yield listener.getsockname()[1]


@asynccontextmanager
async def _running(host: ServerHost, serve: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    async with host:
        task = asyncio.get_running_loop().create_task(serve())
        yield
        host.stop_signal.set()
        await task


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


async def _warm(caller: Caller, port: int | None, requests: list[bytes]) -> Play:
    await caller.call(port, requests, WARM_UP)
    return partial(caller.call, port, [])


def _scenarios(directory: Path) -> list[Served]:
    hosts = layered_hosts(directory)
    be_patient()
    plain = partial(ServerHost, Container())
    return [
        _floor,
        partial(_stateless, plain()),
        partial(_in_session, plain()),
        partial(_over_stdio, plain()),
        *(partial(_stateless, hosts[name]) for name in LAYERS),
    ]


def main() -> None:
    """Make calls inside `functools.reduce`, the function at which valgrind begins and ends to count."""
    caller = Caller()
    with TemporaryDirectory() as directory, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for served in _scenarios(Path(directory)):
            serving = served(caller)
            play = runner.run(_as_coroutine(serving.__aenter__()))
            gc.collect()
            gc.disable()
            reply = reduce(lambda _, calls, play=play: runner.run(play(calls)), (CALLS,), b"")  # type: ignore[misc]
            gc.enable()
            assert wire.ANSWER in reply, reply
            runner.run(_as_coroutine(serving.__aexit__(None, None, None)))
    caller.close()


async def _as_coroutine(work: Awaitable[Any]) -> Any:
    return await work


if __name__ == "__main__":
    main()
