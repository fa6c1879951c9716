"""The sessions that this process holds of those that all processes of a server share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, Literal

from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import IEventStore, ISessionStore, KnownSession
from axolotl_server.asgi.http import HttpRefusal
from axolotl_server.handler import DefaultHandler
from axolotl_server.sessions.session import Session
from axolotl_server.sessions.sessions import Sessions
from axolotl_server.sessions.shared_session import BusMessage, SessionBus, SharedSession, owner_of
from axolotl_server.settings.transports import SessionSettings

_DROPPED_AT_ONCE: Final = 0.1
"""Which part of the sessions makes room where there is none: what is dropped here can be restored."""


class SharedSessions(Sessions):
    """Reads a session anew with each message, for another process may have changed or ended it since.

    What is here is a copy. It goes when nobody has used it here for a while; the session itself ends when nobody has
    used it anywhere.
    """

    shared: ClassVar = True

    def __init__(
        self,
        handler: DefaultHandler,
        settings: SessionSettings,
        events: IEventStore | None,
        store: ISessionStore,
        on_close: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Share what the stores keep, from now on; the sessions' store is closed with them, others by `on_close`."""
        super().__init__(handler, settings, events)
        self._sharing = SessionBus(handler, store)
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        store.open(self._hear, self._rejoined)
        handler.subscriptions.relay = self._relay

    def begin(self, principal: Principal) -> Session:
        """Begin a session, which the others know when it is settled."""
        self.check_open()
        return self._hold(SharedSession(principal, self._store, self._settings.retry_seconds, self._sharing))

    async def restore(self, session_id: bytes, principal: Principal) -> None:
        """Learn what became of a session elsewhere, and hold it if it is the principal's."""
        known = self._of(session_id)
        name = session_id.decode("latin-1")
        found = await self._sharing.asked(self._sharing.store.find(name, 0 if known is None else known.version))
        session = self._of(session_id)  # as it is now
        if found is None:
            if session is not None and session.is_known:
                self.end(session)
        elif found.record is None:
            if session is None:  # dropped meanwhile
                await self.restore(session_id, principal)
        elif session is not None:
            session.apply(found)
        elif found.record.owner == owner_of(principal):
            self._restored(session_id, principal, found)

    async def publish_changes(self, session: Session) -> None:
        """Let the others know what a message did to a session."""
        assert isinstance(session, SharedSession)
        try:
            has_place = await session.settle()
        except HttpRefusal:
            if not session.is_known:
                self.end(session)
            raise
        if not has_place:
            self.end(session)
            raise _too_many()

    async def delete(self, session: Session) -> None:
        """End a session everywhere."""
        assert isinstance(session, SharedSession)
        await self._sharing.tell(BusMessage("ended", session.id))
        await self._sharing.asked(self._sharing.store.end(session.name))
        self.end(session)
        self._sharing.look_after(session.forget())

    def end(self, session: Session) -> None:
        """Hold a session no more, and stop what runs for it here."""
        self._by_id.pop(session.id, None)
        self._handler.disconnect(session)
        session.close()

    async def close(self) -> None:
        """Say nothing more, and let go of the store."""
        self._handler.subscriptions.relay = None
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._sharing.close()
        if self._on_close is not None:
            await self._on_close()

    def _of(self, session_id: bytes) -> SharedSession | None:
        session = self._by_id.get(session_id)
        assert session is None or isinstance(session, SharedSession)
        return session

    def _hold(self, session: SharedSession) -> SharedSession:
        self._find_place()
        self._by_id[session.id] = session
        self._sweep_later()
        return session

    def _restored(self, session_id: bytes, principal: Principal, found: KnownSession) -> None:
        retry_seconds = self._settings.retry_seconds
        session = SharedSession(principal, self._store, retry_seconds, self._sharing, session_id)
        session.apply(found)
        self._hold(session)

    def _find_place(self) -> None:
        """Make room for a session; what is in use stays."""
        if len(self) < self._settings.maximum:
            return
        idle = sorted((one for one in self._by_id.values() if not one.in_use), key=lambda one: one.last_used)
        if not idle:
            raise _too_many()
        for session in idle[: max(1, round(len(idle) * _DROPPED_AT_ONCE))]:
            self.end(session)

    def _drop_idle(self) -> None:
        super()._drop_idle()
        self._sharing.look_after(self._keep_used())

    async def _keep_used(self) -> None:
        """Put off the end of what is in use here, and end what has ended elsewhere."""
        used = [session for session in self.all() if session.in_use]
        try:
            alive = await self._sharing.asked(
                self._sharing.store.hold([session.id.decode("latin-1") for session in used])
            )
        except HttpRefusal:
            return
        for session in used:
            if session.id.decode("latin-1") not in alive:
                self.end(session)

    def _hear(self, data: bytes) -> None:
        word = self._sharing.read(data)
        if word is None:
            return
        if word.kind == "updated":
            self._handler.subscriptions.notify_updated(word.about)
        elif word.kind == "changed":
            self._handler.subscriptions.notify_list_changed(_listable(word.about))
        else:
            session = self._of(word.session)
            if session is not None and word.kind == "ended":
                self.end(session)
            elif session is not None:
                session.hear(word)

    def _rejoined(self) -> None:
        """Trust nothing that is known, for messages may have been lost."""
        for session in self.all():
            assert isinstance(session, SharedSession)
            session.version = 0
            session.wake_followers()
        self._sharing.look_after(self._keep_used())

    def _relay(self, kind: Literal["changed", "updated"], about: str) -> None:
        self._loop.call_soon_threadsafe(self._sharing.soon, BusMessage(kind, about=about))


def _listable(kind: str) -> Literal["tools", "prompts", "resources"]:
    return "tools" if kind == "tools" else "prompts" if kind == "prompts" else "resources"


def _too_many() -> HttpRefusal:
    return HttpRefusal(503, "Too many sessions: end one with DELETE, or try again later")
