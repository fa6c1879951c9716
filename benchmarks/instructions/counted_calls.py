"""The process that valgrind counts: calls without a network, in one process, one scenario after the other."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from axolotl_server import ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.http_server.uvicorn_adapter import UvicornServer
from axolotl_server.transports.stream_exchange import StreamExchange
from benchmarks import wire
from benchmarks.instructions.comparison import FLOOR, LAYERS, SESSION, STATELESS, STDIO
from benchmarks.instructions.counted_layers import QUIET, layered_hosts, token
from benchmarks.servers import floor
from benchmarks.servers.axolotl_add import Container

WARM_UP: Final = 300
CALLS: Final = 500
_PORT: Final = 8000

Play = Callable[[int], Awaitable[None]]
"""Makes a number of calls, one after the other."""


class _Transport(asyncio.Transport):
    """A transport without a socket, which asks for the next request as soon as a reply is written."""

    def __init__(self, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self.on_reply: Callable[[bytes], None] = lambda reply: None

    def write(self, data: Any) -> None:
        self.on_reply(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


class _Caller:
    """Sends each request when the reply to the one before was written."""

    def __init__(self, transport: _Transport, receive: Callable[[bytes], object], requests: list[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._requests = requests
        self._left = 0
        self._done = asyncio.Event()
        transport.on_reply = self._answered
        self.last = b""

    async def play(self, calls: int) -> None:
        """Make calls."""
        self._left = calls
        self._done.clear()
        self._loop.call_soon(self._call)
        await self._done.wait()
        assert wire.ANSWER in self.last, self.last

    def _call(self) -> None:
        self._receive(self._requests[self._left % len(self._requests)])

    def _answered(self, reply: bytes) -> None:
        if b"}" not in reply:
            return  # only the head
        self.last = reply
        self._left -= 1
        if self._left:
            self._loop.call_soon(self._call)
        else:
            self._done.set()


def _connected(protocol: Any, requests: list[bytes]) -> Play:
    transport = _Transport({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", _PORT)})
    protocol.connection_made(transport)
    return _Caller(transport, protocol.data_received, requests).play


async def _floor() -> Play:
    config = uvicorn.Config(floor.app, http="httptools", lifespan="off", log_config=None, access_log=False)
    config.load()
    protocol = HttpToolsProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    return _connected(protocol, wire.stateless_calls(_PORT, 100_000, WARM_UP))


async def _stateless(host: ServerHost) -> Play:
    server = UvicornServer(make_app(host), host.settings.http)
    return _connected(server._make_protocol(), wire.stateless_calls(_PORT, 100_000, WARM_UP))


async def _handshake(host: ServerHost) -> Play:
    app = make_app(host)
    server = UvicornServer(app, host.settings.http)
    replies: list[bytes] = []
    transport = _Transport({"peername": ("127.0.0.1", 1)})
    transport.on_reply = replies.append
    protocol: Any = server._make_protocol()
    protocol.connection_made(transport)
    protocol.data_received(wire.session_initialize(_PORT))
    while not any(b"mcp-session-id" in reply for reply in replies):  # noqa: ASYNC110 - the transport has no event
        await asyncio.sleep(0)
    head = next(reply for reply in replies if b"mcp-session-id" in reply)
    session = head.split(b"mcp-session-id: ")[1].split(b"\r\n")[0].decode()
    protocol.data_received(wire.session_initialized(_PORT, session))
    await asyncio.sleep(0.01)
    return _connected(server._make_protocol(), wire.session_calls(_PORT, session, 100_000, WARM_UP))


async def _stdio(host: ServerHost) -> Play:
    transport = _Transport({})
    exchange = StreamExchange(host.handler, transport.write)
    for line in (wire.stdio_handshake(), wire.stdio_initialized()):
        exchange.receive(line)
        await asyncio.sleep(0.01)
    return _Caller(transport, exchange.receive, [line.rstrip() for line in wire.stdio_calls(100_000, WARM_UP)]).play


async def _layered(host: ServerHost) -> Play:
    credentials = {"Authorization": f"Bearer {token()}"} if host.settings.auth.is_used else None
    server = UvicornServer(make_app(host), host.settings.http)
    return _connected(server._make_protocol(), wire.stateless_calls(_PORT, 100_000, WARM_UP, credentials))


SCENARIOS: Final = (FLOOR, STATELESS, SESSION, STDIO, *LAYERS)


async def _prepare(directory: Path, stack: AsyncExitStack) -> list[Play]:
    host = await stack.enter_async_context(ServerHost(Container(), flags=QUIET))
    plays = [await _floor(), await _stateless(host), await _handshake(host), await _stdio(host)]
    hosts = layered_hosts(directory)
    layered = [await stack.enter_async_context(hosts[name]) for name in LAYERS]
    return [*plays, *[await _layered(one) for one in layered]]


def main() -> None:
    """Make calls inside `functools.reduce`, the function at which valgrind begins and ends to count."""
    stack = AsyncExitStack()
    with TemporaryDirectory() as directory, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        plays = runner.run(_prepare(Path(directory), stack))
        for play in plays:
            runner.run(_as_coroutine(play(WARM_UP)))
        gc.collect()
        gc.disable()
        for play in plays:
            reduce(lambda _, calls, play=play: runner.run(_as_coroutine(play(calls))), (CALLS,), None)  # type: ignore[misc]
        runner.run(stack.aclose())


async def _as_coroutine(work: Awaitable[Any]) -> None:
    await work


if __name__ == "__main__":
    main()
