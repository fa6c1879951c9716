"""The journal of recent requests, and the observer that writes it."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.layers import Call
from axolotl_core.protocol.identity import Implementation
from axolotl_server.audit.redaction import redactor
from axolotl_server.layers.call_ending import DONE, Ending, ending_of
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.request import Request


class CallRecord(msgspec.Struct, omit_defaults=True):
    """One request, completed as it runs; it contains no data from its caller unless arguments are shown."""

    number: int
    """The number of the request in this process."""
    began: float
    """When it arrived, in seconds since the epoch."""
    method: str
    revision: str
    subject: str
    kind: str | None = None
    """`tool`, `prompt`, `resource`, `completion` or `extension`; None if no feature runs."""
    name: str | None = None
    """The canonical name, or the requested name if there is no such tool or prompt."""
    tenant: str | None = None
    client: str | None = None
    """The name and version that the client gives."""
    outcome: str | None = None
    """None while it runs."""
    reason: str | None = None
    rule: str | None = None
    seconds: float | None = None
    queued_seconds: float | None = None
    result_bytes: int | None = None
    arguments: msgspec.Raw | None = None
    """Without sensitive values; None unless arguments are shown."""
    reference: str | None = None
    """The reference of the call in the log."""


Listener: TypeAlias = Callable[[CallRecord], object]
"""Called when a request begins and when it has ended."""

_MAX_ARGUMENT_BYTES: Final = 2048
_MAX_TEXT: Final = 120


class Entry:
    """A request that is being answered."""

    __slots__ = ("_clock", "ending", "record")

    def __init__(self, number: int, request: Request) -> None:
        principal = request.exchange.principal
        self._clock = time.perf_counter()
        self.record = CallRecord(
            number=number,
            began=time.time(),
            method=_short(request.head.method),
            revision=request.era.revision.name,
            subject=_short(principal.subject),
            tenant=None if principal.tenant is None else _short(principal.tenant),
            client=_named(request.client),
        )
        self.ending: Ending | None = None
        """How its call ended."""

    @property
    def ended(self) -> bool:
        """Whether it was answered."""
        return self.record.outcome is not None

    def end(self, ending: Ending, result_bytes: int | None) -> None:
        """Complete the record."""
        record = self.record
        record.outcome, record.reason, record.rule = ending.outcome, ending.reason, ending.rule
        record.seconds = round(time.perf_counter() - self._clock, 6)
        record.result_bytes = result_bytes


class Journal:
    """Remembers the latest requests, and passes each one to listeners."""

    def __init__(self, size: int) -> None:
        self._recent: deque[CallRecord] = deque(maxlen=size)
        self._running: dict[int, Entry] = {}
        self._listeners: set[Listener] = set()
        self._next_number = count(1).__next__

    @property
    def recent(self) -> tuple[CallRecord, ...]:
        """The latest requests that have ended, oldest first."""
        return tuple(self._recent)

    def running(self) -> Iterator[CallRecord]:
        """Return the running requests."""
        return (entry.record for entry in tuple(self._running.values()))

    def begin(self, request: Request) -> Entry:
        """Add a request; listeners are told by `announce`."""
        entry = Entry(self._next_number(), request)
        self._running[entry.record.number] = entry
        return entry

    def announce(self, entry: Entry) -> None:
        """Pass a running request to listeners."""
        if not entry.ended:
            self._notify(entry.record)

    def end(self, entry: Entry, ending: Ending = DONE, result_bytes: int | None = None) -> None:
        """Note how a request ended, unless it has ended already."""
        if entry.ended:
            return
        entry.end(ending, result_bytes)
        self._running.pop(entry.record.number, None)
        self._recent.append(entry.record)
        self._notify(entry.record)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns the function that removes it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def _notify(self, record: CallRecord) -> None:
        for listener in tuple(self._listeners):
            listener(record)


class _HandshakeParams(msgspec.Struct, rename="camel"):
    client_info: Implementation


class _Handshake(msgspec.Struct):
    params: _HandshakeParams


def client_in_handshake(request: Request) -> str | None:
    """Name the client of a handshake, which the request itself introduces."""
    try:
        return _named(msgspec.json.decode(request.data, type=_Handshake).params.client_info)
    except msgspec.DecodeError:
        return None


def _named(client: Implementation | None) -> str | None:
    return None if client is None else _short(f"{client.name} {client.version}")


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


class CallObserver(IObserver):
    """Writes the journal: requests begin and end in it, and calls tell how their code ended."""

    def __init__(self, journal: Journal, *, show_arguments: bool = False) -> None:
        self._journal = journal
        self._show_arguments = show_arguments
        self._requests: dict[Request, Entry] = {}
        self._tasks: dict[Call, Entry] = {}
        """The entries of calls that run as tasks."""

    def request_begun(self, request: Request, method: str | None) -> None:
        entry = self._requests[request] = self._journal.begin(request)
        name = request.head.params.name
        if method in ("tools/call", "prompts/get") and name is not UNSET:
            entry.record.name = name
        request.exchange.loop.call_soon(self._journal.announce, entry)

    def request_answered(self, request: Request, result: bytes | None, error: BaseException | None) -> None:
        entry = self._requests.pop(request)
        if request.head.method == "initialize":
            entry.record.client = client_in_handshake(request)
        self._journal.end(entry, _ending_of(entry, request, result, error), None if result is None else len(result))

    def call_begun(self, call: Call) -> None:
        request = call.caller
        assert isinstance(request, Request)
        entry = self._requests.get(request)
        if entry is None:
            entry = self._tasks[call] = self._journal.begin(request)
        entry.record.kind, entry.record.name = call.spec.kind, call.spec.name

    def call_ended(self, call: Call, ending: Ending) -> None:
        request, task = call.caller, self._tasks.pop(call, None)
        assert isinstance(request, Request)
        entry = self._requests[request] if task is None else task
        record, entry.ending = entry.record, ending
        record.queued_seconds, record.reference = call.queued_seconds or None, call.reference
        if self._show_arguments and call.arguments is not None:
            record.arguments = _redacted(call)
        if task is not None or call.abandoned:
            self._journal.end(entry, ending)


_redactor_of: Final = lru_cache(maxsize=1000)(redactor)


def _redacted(call: Call) -> msgspec.Raw | None:
    """Redact the arguments of a call; None if there are none, or too many."""
    redact = _redactor_of(call.spec)
    arguments = None if redact is None else redact(call.raw)
    text = b"" if arguments is None else bytes(arguments)
    return arguments if text.startswith(b'{"') and len(text) <= _MAX_ARGUMENT_BYTES else None


def _ending_of(entry: Entry, request: Request, result: bytes | None, error: BaseException | None) -> Ending:
    """Prefer what went wrong in the call, then what the answer says."""
    if entry.ending is not None and entry.ending is not DONE:
        return entry.ending
    if error is not None:
        return ending_of(error)
    if result is None:
        return Ending("cancelled")
    if request.is_error:
        return Ending("error")
    # A tool is answered without a call only if the call runs as a task.
    is_task = entry.ending is None and request.head.method == "tools/call"
    return Ending("ok", "task") if is_task else DONE
