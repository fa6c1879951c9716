"""The sessions of a server with several processes, as one of them holds them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, Literal

import msgspec

from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import IEventStore, ISessionStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.protocol.fair_share import Share
from axolotl_server.sessions.event_archive import Archive
from axolotl_server.sessions.session import Session
from axolotl_server.sessions.sessions import Sessions, too_many_sessions
from axolotl_server.sessions.shared_session import BusMessage, SessionBus, SharedSession, owner_of
from axolotl_server.settings.transports import SessionSettings

_decode = msgspec.msgpack.Decoder(BusMessage).decode
_DROPPED_SHARE: Final = 0.1
"""The share of idle sessions that is dropped to make room; they can be restored."""


class SharedSessions(Sessions):
    """Reads a session with each message, because another process may have changed or ended it.

    This process holds copies, and drops those that it has not used for a while. A session ends when no process has
    used it for a while.
    """

    shared: ClassVar = True

    def __init__(
        self,
        handler: DefaultHandler,
        settings: SessionSettings,
        events: IEventStore | None,
        store: ISessionStore,
        maximum_per_caller: int,
        *,
        on_close: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Open the store of sessions, which is closed with them; `on_close` closes other stores."""
        super().__init__(handler, settings, events, maximum_per_caller)
        self._bus = SessionBus(handler, store)
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        store.open(self._receive, self._reconnected, self._expired)
        handler.subscriptions.relay = self._relay
        self._sweep_later()

    def begin(self, principal: Principal, share: Share | None) -> Session:
        """Begin a session, which is stored when its changes are published."""
        self.check_open()
        return self._hold(SharedSession(principal, self._store, self.reconnect_seconds, self._bus, share=share))

    async def restore(self, session_id: bytes, principal: Principal) -> None:
        """Update a session from the store, if it belongs to the principal."""
        known = self._of(session_id)
        name = session_id.decode("latin-1")
        found = await self._bus.ask(self._bus.store.find(name, 0 if known is None else known.version))
        session = self._of(session_id)  # it may have changed while waiting
        if found is None:
            if session is not None and session.is_known:
                self.end(session)
        elif found.record is None:
            if session is None:  # dropped while waiting
                await self.restore(session_id, principal)
        elif session is not None:
            session.apply(found)
        elif found.record.owner == owner_of(principal.identity):
            restored = SharedSession(principal, self._store, self.reconnect_seconds, self._bus, session_id)
            restored.apply(found)
            self._hold(restored)

    async def publish_changes(self, session: Session) -> None:
        """Store what a message changed in a session."""
        assert isinstance(session, SharedSession)
        try:
            has_room = await session.publish()
        except HttpRefusal:
            if not session.is_known:
                self.end(session)
            raise
        if not has_room:
            self.end(session)
            raise too_many_sessions()

    async def delete(self, session: Session) -> None:
        """End a session in all processes."""
        assert isinstance(session, SharedSession)
        await self._bus.send(BusMessage("ended", session.id))
        await self._bus.ask(self._bus.store.end(session.name))
        self.end(session)
        self._bus.run_in_background(session.forget())

    def end(self, session: Session) -> None:
        """Drop a session, and stop its calls in this process."""
        self._by_id.pop(session.id, None)
        self._handler.disconnect(session)
        session.close()

    async def ping(self) -> None:
        """Look for a session that does not exist; raises SessionStoreError if the store is unavailable."""
        await self._bus.store.find("-", 0)

    async def close(self) -> None:
        """Send nothing more, and close the stores."""
        self._handler.subscriptions.relay = None
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._bus.close()
        if self._on_close is not None:
            await self._on_close()

    def _of(self, session_id: bytes) -> SharedSession | None:
        session = self._by_id.get(session_id)
        assert session is None or isinstance(session, SharedSession)
        return session

    def _hold(self, session: SharedSession) -> SharedSession:
        self._make_room(session.share)
        self._by_id[session.id] = session
        self._sweep_later()
        return session

    def _make_room(self, share: Share | None) -> None:
        """Make room for a session by dropping copies of idle ones; the store counts the sessions of a principal."""
        if len(self) < self._settings.maximum:
            return
        idle = sorted((one for one in self._by_id.values() if not one.in_use), key=lambda one: one.last_used)
        if not idle:
            raise too_many_sessions()
        for session in idle[: max(1, round(len(idle) * _DROPPED_SHARE))]:
            self.end(session)

    def _drop_idle(self) -> None:
        super()._drop_idle()
        self._bus.run_in_background(self._keep_used())

    async def _keep_used(self) -> None:
        """Extend the life of sessions in use here, and drop those that have ended elsewhere."""
        used = [session for session in self.all() if session.in_use]
        try:
            alive = await self._bus.ask(self._bus.store.hold([session.id.decode("latin-1") for session in used]))
        except HttpRefusal:
            return
        for session in used:
            if session.id.decode("latin-1") not in alive:
                self.end(session)

    def _receive(self, data: bytes) -> None:
        try:
            message = _decode(data)
        except msgspec.DecodeError:  # of another version of the software
            return
        if message.kind == "updated":
            self._handler.subscriptions.updated(message.about, relays=False)
        elif message.kind == "changed":
            self._handler.subscriptions.list_changed(_listable(message.about), relays=False)
        else:
            session = self._of(message.session)
            if session is not None and message.kind == "ended":
                self.end(session)
            elif session is not None:
                session.receive(message)

    def _reconnected(self) -> None:
        """Read all sessions again, because messages may have been lost."""
        for session in self.all():
            assert isinstance(session, SharedSession)
            session.version = 0
            session.wake_followers()
        self._bus.run_in_background(self._keep_used())

    def _expired(self, names: Sequence[str]) -> None:
        """Delete the events of sessions that nobody has used for a while, even if no process has a copy."""
        if self._store is not None:
            self._bus.run_in_background(_forget(self._store, names))

    def _relay(self, kind: Literal["changed", "updated"], about: str) -> None:
        self._loop.call_soon_threadsafe(self._bus.send_later, BusMessage(kind, about=about))


async def _forget(store: IEventStore, names: Sequence[str]) -> None:
    for name in names:
        await Archive(store, name).forget()


def _listable(kind: str) -> Literal["tools", "prompts", "resources"]:
    return "tools" if kind == "tools" else "prompts" if kind == "prompts" else "resources"
