"""Where the messages of event streams are kept, so that a client that lost its connection can hear what it missed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["IEventStore", "StoredEvent"]


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
