"""HTTP service on a listening socket, with a graceful shutdown."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from axolotl_server.host import ServerHost
from axolotl_server.http.assembly import check_exposure, make_app, tls_context
from axolotl_server.http.server.connections import HttpDrain, StallCheck
from axolotl_server.http.server.uvicorn_adapter import UvicornServer

if TYPE_CHECKING:
    from axolotl_server.http.server.fair_acceptor import BoardPlace

_CHECK_SECONDS: Final = 0.5


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
    await host.begin()
    app = make_app(host)
    server = UvicornServer(app, host.settings.http, tls_context(host.settings.http))
    drain = HttpDrain(server, app, host)
    with _regular_checks(server, host):
        acceptor = server.listen(listener, place)
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
