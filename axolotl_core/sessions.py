"""What the processes of a server share about the sessions of clients that use the handshake."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from axolotl_core.errors import AxolotlError
from axolotl_core.protocol.identity import Implementation


class StoredEvent(NamedTuple):
    """A message as it was kept."""

    id: str
    message: bytes


class IEventStore(ABC):
    """Keeps messages by session and stream, and may drop the oldest of them whenever it needs room.

    The server chooses the names of sessions and streams: no client can name those of another. An empty message is kept
    for the sake of its id.
    """

    @abstractmethod
    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message and give its id: unique in its stream, at most 64 characters of visible ASCII."""

    @abstractmethod
    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        """Give what followed an event on its own stream, oldest first; None if the store knows no such event.

        The id comes from a client: it is visible ASCII and not too long, but may be anything else. Where the event
        itself was dropped for lack of room, what is left of those that followed it is given.
        """

    @abstractmethod
    async def forget(self, session: str, stream: str | None = None) -> None:
        """Drop a stream of a session, or all that the session has; nothing is appended to it afterwards."""


class SessionStoreError(AxolotlError):
    """A store does not answer for now; the text is for the log and holds no secret."""


class SessionRecord(msgspec.Struct, frozen=True):
    """A session as every process has to know it."""

    owner: str
    """Whose it is: a digest of the principal's identity."""
    revision: str
    """What was agreed upon in the handshake."""
    client: Implementation
    capabilities: Mapping[str, Any] = {}
    initialized: bool = False
    log_level: str | None = None
    subscriptions: frozenset[str] = frozenset()
    news: str | None = None
    """The stream that carries what the server says unasked, if the client ever asked for one."""


class SessionChange(msgspec.Struct, frozen=True):
    """What became different in a session; None and nothing where all is as it was."""

    initialized: bool | None = None
    log_level: str | None = None
    news: str | None = None
    watched: frozenset[str] = frozenset()
    unwatched: frozenset[str] = frozenset()


class KnownSession(NamedTuple):
    """The state of a session, by its number."""

    version: int
    """Above 0, and another one after each change."""
    record: SessionRecord | None
    """None if nothing changed since the version that was known already."""


class ISessionStore(ABC):
    """Keeps sessions until nobody has used them for a while, and carries messages between the processes.

    The server chooses the names of sessions. A process *holds* a session from the first time on that it finds it with
    nothing known. All methods that wait do so for a bounded time, and raise `SessionStoreError` then.
    """

    @abstractmethod
    def open(self, hear: Callable[[bytes], object], rejoined: Callable[[], object]) -> None:
        """Begin to hear, in the running loop.

        `rejoined` is called whenever messages may have been lost, because there was no way to hear them for a while.
        """

    @abstractmethod
    async def begin(self, session: str, record: SessionRecord) -> bool:
        """Keep a new session, which this process holds; answers False if there are too many."""

    @abstractmethod
    async def find(self, session: str, known: int) -> KnownSession | None:
        """Give a session that is used now, None if there is none; `known` is 0 where nothing is known of it."""

    @abstractmethod
    async def change(self, session: str, change: SessionChange) -> int | None:
        """Change a session and give its new version, None if it has ended."""

    @abstractmethod
    async def hold(self, sessions: Sequence[str]) -> frozenset[str]:
        """Say that sessions are in use here; gives those that have not ended."""

    @abstractmethod
    async def end(self, session: str) -> None:
        """End a session, if it has not ended."""

    @abstractmethod
    async def tell(self, session: str, message: bytes, *, patient: bool = False) -> bool:
        """Give a message to all others that hold a session; answers False if nobody heard it.

        A `patient` one waits a moment for those who cannot hear just now.
        """

    @abstractmethod
    async def announce(self, message: bytes) -> None:
        """Give a message to all other processes."""

    @abstractmethod
    async def close(self) -> None:
        """Hear no more, and let go of everything."""
