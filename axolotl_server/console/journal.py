"""The calls of a process as they come and go, for those who want to see them."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, TypeAlias

import msgspec

from axolotl_core.protocol.identity import Implementation
from axolotl_server.console.records import CallRecord
from axolotl_server.layers.audit_outcomes import DONE, Ending
from axolotl_server.request import Request

__all__ = ["Entry", "Journal", "Listener", "client_in_handshake"]

Listener: TypeAlias = Callable[[CallRecord], object]
"""Hears of a request when it begins and when it has ended."""

_MOST_ARGUMENT_BYTES: Final = 2048
_LONGEST_TEXT: Final = 120


class Entry:
    """A request that is being answered."""

    __slots__ = (
        "_clock",
        "_first",
        "arguments",
        "client",
        "ended",
        "ending",
        "kind",
        "name",
        "queued_seconds",
        "reference",
    )

    def __init__(self, number: int, request: Request, method: str) -> None:
        principal = request.exchange.principal
        self._clock = time.perf_counter()
        self._first = CallRecord(
            number=number,
            began=time.time(),
            method=method,
            revision=request.era.revision.name,
            subject=_short(principal.subject),
            tenant=None if principal.tenant is None else _short(principal.tenant),
        )
        self.client = _named(request.client)
        self.kind: str | None = None
        self.name: str | None = None
        self.ending: Ending | None = None
        """How the layers say that it ended."""
        self.ended = False
        self.queued_seconds: float | None = None
        self.arguments: msgspec.Raw | None = None
        self.reference: str | None = None

    @property
    def number(self) -> int:
        """Which of the process's requests it is."""
        return self._first.number

    def record(self) -> CallRecord:
        """Tell what is known while it runs."""
        return msgspec.structs.replace(self._first, kind=self.kind, name=self.name, client=self.client)

    def ended_record(self, ending: Ending, result_bytes: int | None) -> CallRecord:
        """Tell what came of it."""
        arguments = self.arguments
        return msgspec.structs.replace(
            self._first,
            kind=self.kind,
            name=self.name,
            client=self.client,
            outcome=ending.outcome,
            reason=ending.reason,
            rule=ending.rule,
            seconds=round(time.perf_counter() - self._clock, 6),
            queued_seconds=self.queued_seconds,
            result_bytes=result_bytes,
            arguments=None if arguments is None or len(bytes(arguments)) > _MOST_ARGUMENT_BYTES else arguments,
            reference=self.reference,
        )


class Journal:
    """Remembers the latest requests and tells of each; what is kept does not grow with time."""

    def __init__(self, keep: int) -> None:
        self._recent: deque[CallRecord] = deque(maxlen=keep)
        self._running: dict[int, Entry] = {}
        self._listeners: set[Listener] = set()
        self._next_number = count(1).__next__

    @property
    def recent(self) -> tuple[CallRecord, ...]:
        """The latest requests that have ended, the oldest first."""
        return tuple(self._recent)

    def running(self) -> Iterator[CallRecord]:
        """Give the requests that are being answered."""
        return (entry.record() for entry in tuple(self._running.values()))

    def begin(self, request: Request, method: str) -> Entry:
        """Note a request that came; `announce` tells of it."""
        entry = Entry(self._next_number(), request, method)
        self._running[entry.number] = entry
        return entry

    def announce(self, entry: Entry) -> None:
        """Tell of a request whose answer may take a while."""
        if not entry.ended:
            self._tell(entry.record())

    def end(self, entry: Entry, ending: Ending = DONE, result_bytes: int | None = None) -> None:
        """Note how a request ended; what comes after its end is passed over."""
        if entry.ended:
            return
        entry.ended = True
        self._running.pop(entry.number, None)
        record = entry.ended_record(ending, result_bytes)
        self._recent.append(record)
        self._tell(record)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener from now on; the answer ends it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def _tell(self, record: CallRecord) -> None:
        for listener in tuple(self._listeners):
            listener(record)


class _HandshakeParams(msgspec.Struct, rename="camel"):
    client_info: Implementation


class _Handshake(msgspec.Struct):
    params: _HandshakeParams


def client_in_handshake(request: Request) -> str | None:
    """Name the client that a handshake introduces; before it nobody knows."""
    try:
        return _named(msgspec.json.decode(request.data, type=_Handshake).params.client_info)
    except msgspec.DecodeError:
        return None


def _named(client: Implementation | None) -> str | None:
    return None if client is None else _short(f"{client.name} {client.version}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
