"""Sessions of HTTP clients that use the handshake: capped, and gone when nobody uses them."""

import asyncio
import secrets
import time
from collections.abc import Callable

from axolotl_core.protocol.identity import Principal
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.peer import Connection
from axolotl_server.settings import SessionSettings

__all__ = ["Session", "Sessions"]


class Session(Connection):
    """A connection that lives across requests, bound to the principal that began it."""

    __slots__ = ("id", "last_used", "outlet", "principal")

    def __init__(self, principal: Principal) -> None:
        super().__init__(self._send)
        self.id = secrets.token_hex(16).encode()
        self.principal = principal
        self.last_used = time.monotonic()
        self.outlet: Callable[[bytes | None], object] | None = None
        """Where the open event stream takes messages; None ends it."""

    @property
    def in_use(self) -> bool:
        """Whether something keeps the session alive however old its last request is."""
        return bool(self.calls) or self.outlet is not None

    def _send(self, message: bytes) -> None:
        if self.outlet is not None:
            self.outlet(message)


class Sessions:
    """All sessions of a process."""

    def __init__(self, handler: DefaultHandler, settings: SessionSettings) -> None:
        self._handler = handler
        self._settings = settings
        self._by_id: dict[bytes, Session] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def begin(self, principal: Principal) -> Session:
        """Begin a session.

        Raises:
            HttpRefusal: 503 if there are too many.
        """
        if len(self._by_id) >= self._settings.maximum:
            self._drop_idle()
        if len(self._by_id) >= self._settings.maximum:
            raise HttpRefusal(503, "Too many sessions: end one with DELETE, or try again later")
        session = Session(principal)
        self._by_id[session.id] = session
        self._handler.connect(session)
        self._sweep_later()
        return session

    def find(self, session_id: bytes | None, principal: Principal) -> Session:
        """Find the session a request names.

        Raises:
            HttpRefusal: 400 if it names none, 404 if there is no such session of this principal.
        """
        if session_id is None:
            raise HttpRefusal(
                400, "Bad request: send the Mcp-Session-Id that initialize gave, or params._meta with each request"
            )
        session = self._by_id.get(session_id)
        if session is None or session.principal != principal:
            raise HttpRefusal(404, "Session not found: it has ended, initialize again")
        session.last_used = time.monotonic()
        return session

    def end(self, session: Session) -> None:
        """End a session and what runs for it."""
        self._by_id.pop(session.id, None)
        self._handler.disconnect(session)
        if session.outlet is not None:
            session.outlet(None)

    def end_streams(self) -> None:
        """Close every open event stream; the sessions go on."""
        for session in self._by_id.values():
            if session.outlet is not None:
                session.outlet(None)

    def _sweep_later(self) -> None:
        if self._sweeping is None and self._by_id:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(self._settings.idle_seconds / 4, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        self._drop_idle()
        self._sweep_later()

    def _drop_idle(self) -> None:
        now = time.monotonic()
        for session in tuple(self._by_id.values()):
            if session.in_use:
                session.last_used = now
            elif session.last_used < now - self._settings.idle_seconds:
                self.end(session)
