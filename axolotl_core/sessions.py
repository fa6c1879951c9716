"""Ports for session stores and event stores, and the session state that processes share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from axolotl_core.errors import AxolotlError


class StoredEvent(NamedTuple):
    """A stored message and its event ID."""

    id: str
    message: bytes


class IEventStore(ABC):
    """Stores messages per session and stream, and may drop the oldest of them to free space.

    A session is named by a digest of its ID, so that reading a store does not give access to sessions. The server
    chooses session and stream IDs, so a client cannot name those of another client. An empty message is stored too,
    because its event ID is needed.
    """

    def count_for(self, session: str, share: str) -> None:  # noqa: B027 - most stores have no such limit
        """Note whom the events of a session count for; each process calls it before its first event of the session.

        A store with a limit for all sessions can take those above it from whoever has most; others ignore it.
        """

    @abstractmethod
    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Store a message and return its ID: unique in its stream, at most 64 characters of visible ASCII."""

    @abstractmethod
    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        """Return the events that followed an event on its stream, oldest first, or None if the event is unknown.

        The ID comes from a client: it is short, visible ASCII, but otherwise unchecked. If the event itself was
        dropped to free space, return those of its successors that are left.
        """

    @abstractmethod
    async def forget(self, session: str, stream: str | None = None) -> None:
        """Drop a stream of a session, or all its streams. Nothing is appended to them afterwards."""


class SessionStoreError(AxolotlError):
    """The session store is unavailable. The text is written to the log and contains no secrets."""


class SessionRecord(msgspec.Struct, frozen=True):
    """The state of a session that every process needs."""

    owner: str
    """A digest of the identity of the principal that opened the session."""
    revision: str
    """The protocol revision agreed on in the handshake."""
    client: bytes
    """The client's description of itself, as JSON."""
    capabilities: bytes = b"{}"
    """The capabilities of the client, as JSON."""
    initialized: bool = False
    log_level: str | None = None
    subscriptions: frozenset[str] = frozenset()
    notification_stream: str | None = None
    """The stream for messages that do not belong to a request, if the client ever opened one."""
    share: str | None = None
    """A digest that is the same for all sessions that count for one principal or address; None if it is not limited."""

    def changed(self, change: "SessionChange") -> "SessionRecord":
        """Return the record after a change."""
        return msgspec.structs.replace(
            self,
            initialized=self.initialized if change.initialized is None else change.initialized,
            log_level=change.log_level or self.log_level,
            notification_stream=change.notification_stream or self.notification_stream,
            subscriptions=(self.subscriptions | change.subscribed) - change.unsubscribed,
        )


class SessionChange(msgspec.Struct, frozen=True):
    """A change of a session. None and empty sets leave a field unchanged."""

    initialized: bool | None = None
    log_level: str | None = None
    notification_stream: str | None = None
    subscribed: frozenset[str] = frozenset()
    unsubscribed: frozenset[str] = frozenset()


class KnownSession(NamedTuple):
    """A version of a session's state."""

    version: int
    """Greater than 0, and different after each change."""
    record: SessionRecord | None
    """None if the state has not changed since the version that the process already knows."""


def hide_session_id(session: str) -> str:
    """Hash a session ID for use as a key, so that reading a store's keys does not give access to sessions."""
    return blake2b(session.encode(), digest_size=16).hexdigest()


class ISessionStore(ABC):
    """Stores sessions until they expire, and carries messages between processes.

    The server chooses session IDs. A process *holds* a session once it has created it or found it for the first time.
    Methods that wait do so for a bounded time, then raise `SessionStoreError`.
    """

    @abstractmethod
    def open(
        self,
        receive: Callable[[bytes], object],
        reconnected: Callable[[], object],
        expired: Callable[[Sequence[str]], object],
    ) -> None:
        """Start receiving messages, in the running loop.

        `reconnected` is called whenever messages may have been lost because the connection was interrupted. `expired`
        is called, in one of the processes, with the digests of sessions that were idle for too long.
        """

    @abstractmethod
    async def begin(self, session: str, record: SessionRecord) -> bool:
        """Store a new session, which this process holds.

        Return False if there are too many sessions, in all or with the same `share`.
        """

    @abstractmethod
    async def find(self, session: str, known: int) -> KnownSession | None:
        """Find a session and renew it; None if it does not exist. `known` is the known version, or 0."""

    @abstractmethod
    async def change(self, session: str, change: SessionChange) -> int | None:
        """Change a session and return its new version, or None if it has ended."""

    @abstractmethod
    async def hold(self, sessions: Sequence[str]) -> frozenset[str]:
        """Renew sessions that are in use here, and return those that have not ended.

        Every process calls it at intervals, also without sessions, so that expired ones are noticed.
        """

    @abstractmethod
    async def end(self, session: str) -> None:
        """End a session, if it has not ended already."""

    @abstractmethod
    async def send(self, session: str, message: bytes, *, wait: bool = False) -> bool:
        """Send a message to all other processes that hold a session. Return False if none received it.

        With `wait`, wait a moment for processes that cannot receive messages at present.
        """

    @abstractmethod
    async def broadcast(self, message: bytes) -> None:
        """Send a message to all other processes."""

    @abstractmethod
    async def close(self) -> None:
        """Stop receiving messages and release all resources."""
