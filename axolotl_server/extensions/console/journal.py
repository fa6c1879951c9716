"""The journal of recent requests."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.errors import InvalidParams
from axolotl_core.layers import Call
from axolotl_core.protocol.identity import Implementation
from axolotl_server.audit.redaction import redactor
from axolotl_server.layers.call_ending import DONE, Ending, ending_of
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.params import InitializeParams, read_params
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


@dataclass(slots=True)
class _Entry:
    """A request that is being answered."""

    record: CallRecord
    clock: float
    ending: Ending | None = None
    """How its call ended."""


class Journal(IObserver):
    """Remembers the latest requests, and passes each one to listeners; calls tell how their code ended."""

    def __init__(self, size: int, *, show_arguments: bool = False) -> None:
        self._show_arguments = show_arguments
        self._recent: deque[CallRecord] = deque(maxlen=size)
        self._requests: dict[Request, _Entry] = {}
        self._tasks: dict[Call, _Entry] = {}
        """The entries of calls that run as tasks."""
        self._listeners: set[Listener] = set()
        self._next_number = count(1).__next__

    @property
    def recent(self) -> tuple[CallRecord, ...]:
        """The latest requests that have ended, oldest first."""
        return tuple(self._recent)

    def running(self) -> Iterable[CallRecord]:
        """Return the running requests, oldest first."""
        records = (entry.record for entry in (*self._requests.values(), *self._tasks.values()))
        return sorted((one for one in records if one.outcome is None), key=attrgetter("number"))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns the function that removes it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def request_begun(self, request: Request, method: str | None) -> None:
        entry = self._requests[request] = self._begin(request)
        name = request.head.params.name
        if method in ("tools/call", "prompts/get") and name is not UNSET:
            entry.record.name = name
        request.exchange.loop.call_soon(self._announce, entry.record)

    def request_answered(self, request: Request, result: bytes | None, error: BaseException | None) -> None:
        entry = self._requests.pop(request)
        if request.head.method == "initialize":
            with suppress(InvalidParams):  # the request itself introduces the client
                entry.record.client = named(read_params(request.data, InitializeParams).client_info)
        self._end(entry, _ending_of(entry, request, result, error), None if result is None else len(result))

    def call_begun(self, call: Call) -> None:
        request = call.caller
        assert isinstance(request, Request)
        entry = self._requests.get(request)
        if entry is None:
            entry = self._tasks[call] = self._begin(request)
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
            self._end(entry, ending)

    def _begin(self, request: Request) -> _Entry:
        principal = request.exchange.principal
        record = CallRecord(
            number=self._next_number(),
            began=time.time(),
            method=_short(request.head.method),
            revision=request.era.revision.name,
            subject=_short(principal.subject),
            tenant=None if principal.tenant is None else _short(principal.tenant),
            client=named(request.client),
        )
        return _Entry(record, time.perf_counter())

    def _announce(self, record: CallRecord) -> None:
        """Tell listeners that a request runs, unless it has ended at once."""
        if record.outcome is None:
            self._notify(record)

    def _end(self, entry: _Entry, ending: Ending, result_bytes: int | None = None) -> None:
        """Complete a record, unless the request has ended already, because its code was abandoned."""
        record = entry.record
        if record.outcome is not None:
            return
        record.outcome, record.reason, record.rule = ending.outcome, ending.reason, ending.rule
        record.seconds = round(time.perf_counter() - entry.clock, 6)
        record.result_bytes = result_bytes
        self._recent.append(record)
        self._notify(record)

    def _notify(self, record: CallRecord) -> None:
        for listener in tuple(self._listeners):
            listener(record)


def named(client: Implementation | None) -> str | None:
    """Return the name and version that a client gives."""
    return None if client is None else _short(f"{client.name} {client.version}")


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


_redactor_of: Final = lru_cache(maxsize=1000)(redactor)


def _redacted(call: Call) -> msgspec.Raw | None:
    """Redact the arguments of a call; None if there are none, or too many."""
    redact = _redactor_of(call.spec)
    arguments = None if redact is None else redact(call.raw)
    text = b"" if arguments is None else bytes(arguments)
    return arguments if text.startswith(b'{"') and len(text) <= _MAX_ARGUMENT_BYTES else None


def _ending_of(entry: _Entry, request: Request, result: bytes | None, error: BaseException | None) -> Ending:
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
