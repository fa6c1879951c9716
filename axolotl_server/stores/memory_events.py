"""Event store in memory, with a maximum number and size of events per session."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from axolotl_core.sessions import IEventStore, StoredEvent

_LONGEST_NUMBER: Final = 18


class _SessionLog:
    """The events of all streams of a session, numbered in the order in which they came."""

    def __init__(self) -> None:
        self.events: OrderedDict[int, tuple[str, bytes]] = OrderedDict()
        self.last = 0
        self._bytes = 0

    def add(self, stream: str, message: bytes) -> int:
        self.last += 1
        self.events[self.last] = (stream, message)
        self._bytes += len(message)
        return self.last

    def shrink(self, max_events: int, max_bytes: int) -> None:
        while len(self.events) > max_events or self._bytes > max_bytes:
            _, (_, message) = self.events.popitem(last=False)
            self._bytes -= len(message)

    def remove(self, stream: str) -> None:
        for number in [number for number, (owner, _) in self.events.items() if owner == stream]:
            self._bytes -= len(self.events.pop(number)[1])

    def after(self, stream: str, number: int) -> list[StoredEvent] | None:
        own = {kept: message for kept, (owner, message) in self.events.items() if owner == stream}
        if not own or not (number in own or self._was_dropped(number)):
            return None
        return [StoredEvent(str(kept), message) for kept, message in own.items() if kept > number]

    def _was_dropped(self, number: int) -> bool:
        return 0 < number < next(iter(self.events), 0)


class MemoryEventStore(IEventStore):
    """Keeps the newest events of each session; the number of sessions is limited elsewhere."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._sessions: dict[str, _SessionLog] = {}

    def __len__(self) -> int:
        return sum(len(log.events) for log in self._sessions.values())

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; of one that exceeds the limit by itself, only the ID is kept."""
        log = self._sessions.setdefault(session, _SessionLog())
        number = log.add(stream, message if len(message) <= self._max_bytes else b"")
        log.shrink(self._max_events, self._max_bytes)
        return str(number)

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        log = self._sessions.get(session)
        if log is None or not event_id.isdecimal() or len(event_id) > _LONGEST_NUMBER:
            return None
        return log.after(stream, int(event_id))

    async def forget(self, session: str, stream: str | None = None) -> None:
        if stream is None:
            self._sessions.pop(session, None)
        elif session in self._sessions:
            self._sessions[session].remove(stream)
