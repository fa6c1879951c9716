"""HTTP service on a listening socket, with a graceful shutdown."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from axolotl_server.host import ServerHost
from axolotl_server.http.assembly import check_exposure, make_app, tls_context
from axolotl_server.http.server.connections import HttpDrain, StallCheck
from axolotl_server.http.server.uvicorn_adapter import UvicornServer

_CHECK_SECONDS: Final = 0.5
_BACKLOG: Final = 2048
_MAX_ACCEPTED: Final = 64
"""How many connections are accepted in one turn of the event loop."""
_YIELD_SECONDS: Final = 0.002
"""How long a worker that has accepted connections leaves the next ones to other workers."""
_OUT_OF_FILES_SECONDS: Final = 1.0

_log: Final = logging.getLogger("axolotl")


class Acceptor:
    """Accepts connections, many in each turn of the event loop.

    uvloop accepts one in each turn. If turns take long, new connections then wait in the kernel, where no limit sees
    them.

    Of workers that share a socket, the fastest would accept all connections of a client that opens several. So a worker
    accepts one and leaves the next ones to the others for a moment, then two, and so on while still more wait.
    """

    def __init__(self, server: UvicornServer, listener: socket.socket, *, is_shared: bool = False) -> None:
        self._server = server
        self._listener = listener
        self._is_shared = is_shared
        self._batch = _MAX_ACCEPTED
        self._loop = asyncio.get_running_loop()
        self._attaching: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no more connections; other processes may still accept from the socket."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept_some)

    def _accept_some(self) -> None:
        accepted, pause_seconds = 0, 0.0
        try:
            while accepted < self._batch:
                connection, _ = self._listener.accept()
                accepted += 1
                attaching = self._loop.create_task(self._server.attach(connection))
                self._attaching.add(attaching)
                attaching.add_done_callback(self._attaching.discard)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            pass
        except OSError as error:
            _log.error("accepting connections failed, trying again in a second: %s", error.strerror)
            pause_seconds = _OUT_OF_FILES_SECONDS
        if self._is_shared:
            self._batch = min(self._batch + 1, _MAX_ACCEPTED) if accepted == self._batch else 1
            pause_seconds = pause_seconds or (_YIELD_SECONDS if accepted else 0.0)
        if pause_seconds:
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(pause_seconds, self._listen)


async def serve_http(
    host: ServerHost,
    listener: socket.socket,
    *,
    on_hand_over: Callable[[], object] | None = None,
    on_serving: Callable[[], object] | None = None,
    is_shared: bool = False,
) -> None:
    """Serve on a bound socket until `host.stop_signal` is set. Every call is answered before this returns.

    `on_serving` is called when connections are accepted. With `on_hand_over`, another process listens on the same
    socket: after the stop signal, new connections are left to it. `on_hand_over` is called when idle clients have been
    disconnected, so their next request goes to the new process, and before the streams for notifications end. With
    `is_shared`, other workers accept connections from the socket, too.
    """
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        check_exposure(host, listener.getsockname()[0])
    await host.begin()
    app = make_app(host)
    server = UvicornServer(app, host.settings.http, tls_context(host.settings.http))
    drain = HttpDrain(server, app, host)
    with _regular_checks(server, host):
        acceptor = Acceptor(server, listener, is_shared=is_shared)
        try:
            if on_serving is not None:
                on_serving()
            await host.stop_signal.wait()
            if on_hand_over is not None or host.stop_signal.replaced:
                acceptor.close()  # another process listens on the same socket
            if on_hand_over is not None:  # otherwise clients have time to leave by themselves
                await drain.hand_over(on_hand_over)
            await drain.answer_calls()
        finally:
            acceptor.close()
            listener.close()
        await drain.close_connections()


@contextmanager
def _regular_checks(server: UvicornServer, host: ServerHost) -> Iterator[None]:
    """Close stalled connections, and update the date of replies."""
    loop, stalls = asyncio.get_running_loop(), StallCheck(host.settings.http)
    timer: asyncio.TimerHandle | None = None

    def check() -> None:
        nonlocal timer
        timer = loop.call_later(_CHECK_SECONDS, check)
        server.update_date()
        stalls.check(server.connections)

    check()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
