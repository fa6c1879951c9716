"""From a call to its record."""

import re
from collections.abc import Callable
from time import gmtime, strftime, time_ns
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ToolCall
from axolotl_core.policies.audit import AuditEvent, AuditRecord
from axolotl_core.protocol.wire import canonical_json
from axolotl_server.audit.chain import Hashing
from axolotl_server.layers.audit import Describe
from axolotl_server.layers.call_ending import Ending
from axolotl_server.messages.request import Request

_NANOSECONDS: Final = 1_000_000_000


def _clock() -> Callable[[], str]:
    """Make a clock that writes the date once a second."""
    known, text = -1, ""

    def now() -> str:
        nonlocal known, text
        nanoseconds = time_ns()
        second = nanoseconds // _NANOSECONDS
        if second != known:
            known, text = second, strftime("%Y-%m-%dT%H:%M:%S.", gmtime(second))
        return f"{text}{nanoseconds % _NANOSECONDS // 1000:06d}Z"

    return now


timestamp: Final = _clock()
"""Gives the time in UTC, as RFC 3339 with microseconds."""


_encode: Final = msgspec.json.Encoder().encode
_BREAKS: Final = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
"""What JSON leaves as it is and some readers of text take for the end of a line, or for a command."""


def encode_record(record: AuditRecord) -> bytes:
    """Write a record as a JSON object without line breaks of any kind."""
    try:
        encoded = _encode(record)
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 has no form for
        encoded = _encode(_without_surrogates(msgspec.structs.asdict(record)))
    return encoded if encoded.isascii() and b"\x7f" not in encoded else _BREAKS.sub(_escaped, encoded)


def encode_note(time: str, event: str, **details: Any) -> bytes:
    """Write what a log says of itself, in the same form."""
    return _BREAKS.sub(_escaped, _encode({"time": time, "event": event, **details}))


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _without_surrogates(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


Redact: TypeAlias = Callable[[bytes], Raw | None]
"""Writes valid arguments without what is sensitive; None where there is nothing that may be shown."""

_TRACEPARENT: Final = b"traceparent"
_NO_ENDING: Final = (None, None, None)


def describer(hashing: Hashing, redactor: Callable[[FeatureSpec], Redact | None]) -> Callable[[FeatureSpec], Describe]:
    """Give what compiles the records of a feature."""

    def of(spec: FeatureSpec) -> Describe:
        return _describe(spec, hashing, redactor(spec))

    return of


def _describe(spec: FeatureSpec, hashing: Hashing, redact: Redact | None) -> Describe:
    kind, name, toolset = spec.kind, spec.name, spec.toolset
    algorithm, digest_of = hashing.algorithm, hashing.of_arguments

    def describe(
        call: ToolCall, call_id: str, event: AuditEvent, ending: Ending | None, seconds: float | None
    ) -> AuditRecord:
        outcome, reason, rule = ending or _NO_ENDING
        principal, raw = call.principal, call.raw
        requested, trace_id = _said(call)
        duration = queued = None
        if seconds is not None:
            # Cut off, as nobody can measure it; `round` takes three times as long.
            duration, queued = int(seconds * 1e6) / 1e6, int(call.queued_seconds * 1e6) / 1e6
        shown = redact(raw) if redact is not None and call.arguments is not None else None
        digest = f"{algorithm}:{digest_of(canonical_json(raw))}"
        # In their order, not by name: a record is made for every call, and this takes half the time.
        return AuditRecord(
            timestamp(),
            event,
            call_id,
            kind,
            name,
            requested,
            toolset,
            principal.subject,
            principal.tenant,
            outcome,
            reason,
            rule,
            duration,
            queued,
            digest,
            shown,
            trace_id,
        )

    return describe


def _said(call: ToolCall) -> tuple[str | None, str | None]:
    """Find the name as the caller wrote it, and the id of the trace.

    Most requests belong to no trace, and to see that is quicker than to read them.
    """
    request, name = call.caller, None
    if isinstance(request, Request):
        name = None if request.head.params.name is UNSET else request.head.params.name
        headers = request.exchange.headers
        if _TRACEPARENT not in request.data and (headers is None or _TRACEPARENT not in headers):
            return name, None
    trace = call.trace
    return name, None if trace is None else trace.trace_id
