"""Event store in memory, with a maximum number and size of events per session and in total."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final

from axolotl_core.sessions import IEventStore, StoredEvent

_LONGEST_NUMBER: Final = 18


class _SessionLog:
    """The events of all streams of a session, numbered in the order in which they came."""

    def __init__(self) -> None:
        self.events: OrderedDict[int, tuple[str, bytes]] = OrderedDict()
        self.share: str | None = None
        self.last = 0
        self.bytes = 0

    def add(self, stream: str, message: bytes) -> int:
        self.last += 1
        self.events[self.last] = (stream, message)
        self.bytes += len(message)
        return self.last

    def drop_oldest(self) -> None:
        _, (_, message) = self.events.popitem(last=False)
        self.bytes -= len(message)

    def remove(self, stream: str) -> None:
        for number in [number for number, (owner, _) in self.events.items() if owner == stream]:
            self.bytes -= len(self.events.pop(number)[1])

    def after(self, stream: str, number: int) -> list[StoredEvent] | None:
        own = {kept: message for kept, (owner, message) in self.events.items() if owner == stream}
        was_dropped = 0 < number < next(iter(self.events), 0)
        if not own or not (number in own or was_dropped):
            return None
        return [StoredEvent(str(kept), message) for kept, message in own.items() if kept > number]


class MemoryEventStore(IEventStore):
    """Keeps the newest events of each session; the number of sessions is limited elsewhere.

    Above the limit for all sessions, the caller with the most bytes loses the oldest event of its largest session.
    """

    def __init__(self, max_events: int, max_bytes: int, max_total_bytes: int | None = None) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._max_total_bytes = max_total_bytes
        self._total_bytes = 0
        self._sessions: dict[str, _SessionLog] = {}

    def __len__(self) -> int:
        return sum(len(log.events) for log in self._sessions.values())

    def count_for(self, session: str, share: str) -> None:
        self._sessions.setdefault(session, _SessionLog()).share = share

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; of one that exceeds the limit by itself, only the ID is kept."""
        log = self._sessions.setdefault(session, _SessionLog())
        before = log.bytes
        number = log.add(stream, message if len(message) <= self._max_bytes else b"")
        while len(log.events) > self._max_events or log.bytes > self._max_bytes:
            log.drop_oldest()
        self._total_bytes += log.bytes - before
        while self._max_total_bytes is not None and self._total_bytes > self._max_total_bytes:
            self._drop_one()
        return str(number)

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        log = self._sessions.get(session)
        if log is None or not event_id.isdecimal() or len(event_id) > _LONGEST_NUMBER:
            return None
        return log.after(stream, int(event_id))

    async def forget(self, session: str, stream: str | None = None) -> None:
        log = self._sessions.get(session)
        if log is None:
            return
        before = log.bytes
        if stream is None:
            del self._sessions[session]
            self._total_bytes -= before
        else:
            log.remove(stream)
            self._total_bytes += log.bytes - before

    def _drop_one(self) -> None:
        sizes: Counter[str] = Counter()
        for name, log in self._sessions.items():
            sizes[log.share or name] += log.bytes
        [(share, _)] = sizes.most_common(1)
        logs = (log for name, log in self._sessions.items() if share == (log.share or name))
        largest = max(logs, key=lambda log: log.bytes)
        before = largest.bytes
        largest.drop_oldest()
        self._total_bytes += largest.bytes - before
