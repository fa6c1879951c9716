"""The application under uvicorn, with a shutdown that answers what is running."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from axolotl_server.asgi.http import Send
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.http.assembly import check_exposure, make_app, tls_context
from axolotl_server.http_server.connections import HttpDrain, StallCheck

if TYPE_CHECKING:
    from axolotl_server.http_server.fair_acceptor import BoardPlace

_START: Final = {
    status.value: b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: "
    % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


def reply_at_once(send: Send, status: int, body: bytes) -> bool:
    """Write a whole JSON reply, if the server is uvicorn and nothing is in the way."""
    cycle: Any = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle:
        return False
    if cycle.response_started or cycle.disconnected or cycle.access_log:
        return False
    if not cycle.keep_alive or cycle.flow.write_paused:
        return False
    head = [_START[status], b"%d\r\n" % len(body)]
    for name, value in cycle.default_headers:
        head += (name, b": ", value, b"\r\n")
    cycle.transport.write(b"%b\r\n%b" % (b"".join(head), body))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


_TICKS_BETWEEN_LOOKS = 5
"""uvicorn ticks ten times a second."""


class _DrainingServer(uvicorn.Server):
    """Closes stalled connections, and goes down the ladder of `HttpDrain` when its host is told to end."""

    def __init__(self, config: uvicorn.Config, app: HttpApp, host: ServerHost) -> None:
        super().__init__(config)
        self.on_hand_over: Callable[[], object] | None = None
        self.on_serving: Callable[[], object] | None = None
        self.place: BoardPlace | None = None
        http = host.settings.http
        self._stop_signal = host.stop_signal
        self._stalls = StallCheck(http.header_timeout_seconds, http.body_timeout_seconds)
        self._drain = HttpDrain(self, app, host)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to those whose process it is."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.place is None or not sockets:
            await super().startup(sockets)
        else:
            await self._take_fairly(sockets[0], self.place)
        if self.on_serving is not None:
            self.on_serving()

    async def _take_fairly(self, listener: socket.socket, place: "BoardPlace") -> None:
        """Take connections in turn with the other workers, not as the event loop would."""
        from axolotl_server.http_server.fair_acceptor import FairAcceptor

        await super().startup([])
        acceptor: Any = FairAcceptor(self, listener, place)
        acceptor.start()
        self.servers.append(acceptor)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_LOOKS == 0:
            self._stalls.look(self.server_state.connections)
        return await super().on_tick(counter)

    async def main_loop(self) -> None:
        """Serve until the end is asked for, and look after connections until every call is answered."""
        ticking = asyncio.ensure_future(super().main_loop())
        wanted = asyncio.ensure_future(self._stop_signal.wait())
        try:
            await asyncio.wait((ticking, wanted), return_when=asyncio.FIRST_COMPLETED)
            self._stop_signal.set()
            if self.on_hand_over is not None or self._stop_signal.replaced:
                await self._hand_over()
            await self._drain.answer_calls()
        finally:
            wanted.cancel()
            ticking.cancel()

    async def _hand_over(self) -> None:
        """Leave what comes from now on to the process that listens at the same socket."""
        for server in self.servers:
            server.close()
        if self.on_hand_over is not None:  # else clients have time to go by themselves
            await self._drain.hand_over(self.on_hand_over)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        await self._drain.close_connections()


async def serve_http(
    host: ServerHost,
    listener: socket.socket,
    *,
    on_hand_over: Callable[[], object] | None = None,
    on_serving: Callable[[], object] | None = None,
    place: "BoardPlace | None" = None,
) -> None:
    """Serve on a bound socket until `host.stop_signal` says that it is enough; every call is answered before.

    A server with `on_hand_over` takes no connection from then on: another process listens at the same socket. It calls
    that when its clients would go there with what they want, and before those who wait for news are sent there too.
    `on_serving` is called when connections are taken. One with a `place` takes connections in turn with others.
    """
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        check_exposure(host, listener.getsockname()[0])
    app = make_app(host, reply_at_once)
    context = tls_context(host.settings.http)
    config = uvicorn.Config(
        app,
        http="httptools",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=30,
        ssl_context_factory=None if context is None else lambda config, make_default: context,
    )
    server = _DrainingServer(config, app, host)
    server.on_hand_over, server.on_serving, server.place = on_hand_over, on_serving, place
    await server.serve(sockets=[listener])
