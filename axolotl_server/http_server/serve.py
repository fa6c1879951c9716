"""The HTTP server: the application under uvicorn, with a graceful shutdown."""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.http.assembly import check_exposure, make_app, tls_context
from axolotl_server.http_server.connections import HttpDrain, StallCheck
from axolotl_server.http_server.uvicorn_adapter import UvicornServer, write_reply

if TYPE_CHECKING:
    from axolotl_server.http_server.fair_acceptor import BoardPlace

_TICKS_PER_CHECK: Final = 5
"""uvicorn ticks ten times per second."""


class _DrainingServer(UvicornServer):
    """Closes stalled connections, and shuts down in the steps of `HttpDrain` when its host is to stop."""

    def __init__(self, app: HttpApp, host: ServerHost) -> None:
        super().__init__(app, tls_context(host.settings.http))
        self.on_hand_over: Callable[[], object] | None = None
        self.on_serving: Callable[[], object] | None = None
        self.place: BoardPlace | None = None
        http = host.settings.http
        self._stop_signal = host.stop_signal
        self._stalls = StallCheck(http.header_timeout_seconds, http.body_timeout_seconds)
        self._drain = HttpDrain(self, app, host)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.place is None or not sockets:
            await super().startup(sockets)
        else:
            await self._accept_fairly(sockets[0], self.place)
        if self.on_serving is not None:
            self.on_serving()

    async def _accept_fairly(self, listener: socket.socket, place: "BoardPlace") -> None:
        """Accept connections in turn with the other workers, instead of letting the event loop accept them."""
        from axolotl_server.http_server.fair_acceptor import FairAcceptor

        await super().startup([])
        acceptor: Any = FairAcceptor(self, listener, place)
        acceptor.start()
        self.servers.append(acceptor)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_CHECK == 0:
            self._stalls.check(self.connections)
        return await super().on_tick(counter)

    async def main_loop(self) -> None:
        """Serve until a stop is requested, and keep checking connections until every call is answered."""
        ticking = asyncio.ensure_future(super().main_loop())
        stopping = asyncio.ensure_future(self._stop_signal.wait())
        try:
            await asyncio.wait((ticking, stopping), return_when=asyncio.FIRST_COMPLETED)
            self._stop_signal.set()
            if self.on_hand_over is not None or self._stop_signal.replaced:
                await self._hand_over()
            await self._drain.answer_calls()
        finally:
            stopping.cancel()
            ticking.cancel()

    async def _hand_over(self) -> None:
        """Leave new connections to the process that listens on the same socket."""
        self.close_listeners()
        if self.on_hand_over is not None:  # otherwise clients have time to leave by themselves
            await self._drain.hand_over(self.on_hand_over)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.close_listeners(sockets or ())
        await self._drain.close_connections()


async def serve_http(
    host: ServerHost,
    listener: socket.socket,
    *,
    on_hand_over: Callable[[], object] | None = None,
    on_serving: Callable[[], object] | None = None,
    place: "BoardPlace | None" = None,
) -> None:
    """Serve on a bound socket until `host.stop_signal` is set. Every call is answered before this returns.

    `on_serving` is called when connections are accepted. With `on_hand_over`, another process listens on the same
    socket: after the stop signal, new connections are left to it. `on_hand_over` is called when idle clients have been
    disconnected, so their next request goes to the new process, and before the streams for notifications end. With a
    `place`, connections are accepted in turn with other workers.
    """
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        check_exposure(host, listener.getsockname()[0])
    server = _DrainingServer(make_app(host, write_reply), host)
    server.on_hand_over, server.on_serving, server.place = on_hand_over, on_serving, place
    await server.serve(sockets=[listener])
