"""What sees every request: around the methods of all revisions, and around the code of every feature."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall
from axolotl_core.protocol.identity import Implementation
from axolotl_server.audit.redaction import redactor
from axolotl_server.eras.era import Method, Methods
from axolotl_server.layers.call_ending import DONE, Ending, ending_of, ending_of_stop
from axolotl_server.messages.request import Request


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One request, running or ended; the words of its caller are not in it, save where arguments are to be shown."""

    number: int
    """Counts the requests of this process."""
    began: float
    """When it came, in seconds of the epoch."""
    method: str
    revision: str
    subject: str
    kind: str | None = None
    """`tool`, `prompt`, `resource`, `completion` or `extension`; None for what runs no code of the server's author."""
    name: str | None = None
    """The canonical name; of a tool or prompt that is not there the one that was asked for."""
    tenant: str | None = None
    client: str | None = None
    """What the client says it is."""
    outcome: str | None = None
    """None while it runs."""
    reason: str | None = None
    rule: str | None = None
    seconds: float | None = None
    queued_seconds: float | None = None
    result_bytes: int | None = None
    arguments: msgspec.Raw | None = None
    """Without what is sensitive; None unless they are to be shown."""
    reference: str | None = None
    """What the log calls this call by."""


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


_NAMED: Final = ("tools/call", "prompts/get")
_TELLING: Final = re.compile(rb'"isError":true|"resultType":"task"')
"""Results without it are neither errors nor tasks; with it, one has to look."""


class _Verdict(msgspec.Struct, rename="camel"):
    is_error: bool = False
    result_type: str = "complete"


class CallObserver(ILayer):
    """Keeps the journal: the methods tell when a request begins and ends, the layer how the code of a feature did."""

    def __init__(self, journal: Journal, *, show_arguments: bool = False) -> None:
        self._journal = journal
        self._show_arguments = show_arguments
        self._entries: dict[Request, Entry] = {}

    def observe(self, methods: Methods) -> Methods:
        """Stand around methods."""
        return {name: self._around(name, method) for name, method in methods.items()}

    def _around(self, name: str, method: Method) -> Method:
        journal, entries = self._journal, self._entries

        async def observed(request: Request) -> bytes | None:
            entry = entries[request] = journal.begin(request, name)
            if name in _NAMED and request.head.params.name is not UNSET:
                entry.name = request.head.params.name
            request.exchange.loop.call_soon(journal.announce, entry)
            try:
                result = await method(request)
            except BaseException as error:
                journal.end(entry, _seen(entry) or ending_of(error))
                raise
            finally:
                del entries[request]
                if name == "initialize":
                    entry.client = client_in_handshake(request)
            journal.end(entry, _ending(entry, result), None if result is None else len(result))
            return result

        return observed

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Stand around the code of a feature."""
        journal, entries = self._journal, self._entries
        redact = redactor(spec) if self._show_arguments else None

        async def observed(call: ToolCall) -> Any:
            request = call.caller
            assert isinstance(request, Request)
            known = entries.get(request)
            entry = journal.begin(request, request.head.method) if known is None else known  # the run of a task
            entry.kind, entry.name = spec.kind, spec.name
            call.when_abandoned(partial(_abandon, journal, entry, call))
            try:
                output = await call_next(call)
                entry.ending = _stop(call) or DONE
                return output
            except BaseException as error:
                entry.ending = _stop(call) or ending_of(error)
                raise
            finally:
                entry.queued_seconds, entry.reference = call.queued_seconds or None, call.reference
                if redact is not None and call.arguments is not None:
                    entry.arguments = _members(redact(call.raw))
                if known is None:
                    journal.end(entry, entry.ending or DONE)

        return observed


def _members(arguments: msgspec.Raw | None) -> msgspec.Raw | None:
    """Leave out what names no argument at all."""
    return arguments if arguments is not None and bytes(arguments).startswith(b'{"') else None


def _stop(call: ToolCall) -> Ending | None:
    return None if call.cancel_reason is None else ending_of_stop(call.cancel_reason)


def _abandon(journal: Journal, entry: Entry, call: ToolCall) -> None:
    reason = call.cancel_reason
    journal.end(entry, Ending("abandoned", None if reason is None else reason.value))


def _seen(entry: Entry) -> Ending | None:
    """Give what the layers saw go wrong."""
    return None if entry.ending is DONE else entry.ending


def _ending(entry: Entry, result: bytes | None) -> Ending:
    """Judge by what the layers saw, and where they saw nothing wrong by the answer itself."""
    if result is None:
        return _seen(entry) or Ending("cancelled")
    return _seen(entry) or (_read(result) if _TELLING.search(result) else DONE)


def _read(result: bytes) -> Ending:
    verdict = msgspec.json.decode(result, type=_Verdict)
    if verdict.is_error:
        return Ending("error")
    return Ending("ok", "task") if verdict.result_type == "task" else DONE
