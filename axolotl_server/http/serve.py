"""The application under uvicorn, with a shutdown that answers what is running."""

import socket
import time
from types import FrameType

import uvicorn

from axolotl_core.cancellation import CancelReason
from axolotl_core.event_store import IEventStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.app import HttpApp
from axolotl_server.http.shortcut import reply_at_once
from axolotl_server.http.stalls import StallGuard
from axolotl_server.settings import HttpSettings, ServerSettings

__all__ = ["serve_http"]

_LAST_WORDS_SECONDS = 2
_STEP_SECONDS = 0.1
_TICKS_BETWEEN_LOOKS = 5
"""uvicorn ticks ten times a second."""


class _DrainingServer(uvicorn.Server):
    """Closes stalled connections, and drains calls and streams before uvicorn waits for its connections."""

    def __init__(self, config: uvicorn.Config, app: HttpApp, handler: DefaultHandler, settings: HttpSettings) -> None:
        super().__init__(config)
        self._app = app
        self._handler = handler
        self._drain_seconds = settings.drain_seconds
        self._stalls = StallGuard(settings.header_timeout_seconds, settings.body_timeout_seconds)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_LOOKS == 0:
            self._stalls.look(self.server_state.connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        inflight = self._handler.inflight
        self._app.sessions.end_streams()
        await self._drain()
        inflight.stop_all(CancelReason.SHUTDOWN)
        self._app.sessions.end_streams()  # those that were opened meanwhile
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        """Wait for running calls, until the time is up or a second signal came."""
        end = time.monotonic() + self._drain_seconds
        while not self.force_exit and time.monotonic() < end:
            if await self._handler.inflight.drain(min(_STEP_SECONDS, self._drain_seconds)):
                return


async def serve_http(
    handler: DefaultHandler,
    settings: ServerSettings,
    listener: socket.socket,
    event_store: IEventStore | None = None,
) -> None:
    """Serve on a bound socket until the process is told to stop."""
    app = HttpApp(handler, settings, reply_at_once, event_store)
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
        timeout_graceful_shutdown=_LAST_WORDS_SECONDS,
    )
    await _DrainingServer(config, app, handler, settings.http).serve(sockets=[listener])
