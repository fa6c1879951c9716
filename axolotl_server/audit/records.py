"""Audit records: how they are made from calls, and how they are encoded."""

import re
from collections.abc import Callable
from hashlib import sha256
from time import gmtime, strftime, time_ns
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import ToolCall
from axolotl_core.policies.audit import AuditEvent, AuditRecord
from axolotl_core.protocol.wire import canonical_json
from axolotl_server.audit.chain import Hashing
from axolotl_server.layers.audit import Describe
from axolotl_server.layers.call_ending import DONE, Ending
from axolotl_server.messages.request import Request

_DELETE: Final = 0x7F


_encode: Final = msgspec.json.Encoder().encode
_MAX_DATES: Final = 64


class _Dates(dict[bytes, bytes]):
    """Seconds since 1970 as RFC 3339 in UTC, up to the point before their fraction; each is formatted only once."""

    def __missing__(self, second: bytes) -> bytes:
        if len(self) >= _MAX_DATES:
            self.clear()
        text = self[second] = strftime("%Y-%m-%dT%H:%M:%S.", gmtime(int(second))).encode()
        return text


_DATES: Final = _Dates()


def timestamp(nanoseconds: int | None = None) -> str:
    """Return a time in UTC, or the present one, as RFC 3339 with microseconds."""
    digits = _encode(time_ns() if nanoseconds is None else nanoseconds)
    return f"{_DATES[digits[:-9]].decode()}{digits[-9:-3].decode()}Z"


_UNSAFE: Final = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
"""Characters that JSON does not escape, but that some programs treat as a line break or a control character."""


def encode_record(record: "Record") -> bytes:
    """Encode a record as a JSON object without any kind of line break."""
    if isinstance(record, AuditCallRecord):
        return _encode_call(record)
    try:
        encoded = _encode(record)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        encoded = _encode(without_surrogates(msgspec.structs.asdict(record)))
    return encoded if encoded.isascii() and _DELETE not in encoded else _UNSAFE.sub(_escape, encoded)


def encode_note(time: str, event: str, **details: Any) -> bytes:
    """Encode a record about the log itself."""
    return _UNSAFE.sub(_escape, _encode({"time": time, "event": event, **details}))


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def without_surrogates(fields: dict[str, Any]) -> dict[str, Any]:
    """Escape lone surrogates in the texts of a record, and leave out fields without a value."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


class CallTemplate(msgspec.Struct, frozen=True, gc=False):
    """The members that the records of many calls have in common, as JSON."""

    known: AuditRecord
    """The same as a record."""
    before: bytes
    """The members between the ID and the ending, after the quote that ends the ID."""
    after: bytes
    """The members after those of a single call, and the brace that ends the record."""


class CallDescription(msgspec.Struct, frozen=True, gc=False):
    """What the records of one call have in common."""

    template: CallTemplate
    digest: str
    arguments: Raw | None
    trace_id: str | None
    members: bytes
    """All members after the ending, as JSON, and the brace that ends the record."""
    task: str | None = None
    run: int | None = None

    def started(self, call_id: str) -> "AuditCallRecord":
        """Make the record of the start."""
        return AuditCallRecord(time_ns(), "start", call_id, self)

    def ended(self, call_id: str, ending: Ending, nanoseconds: int, queued_seconds: float) -> "AuditCallRecord":
        """Make the record of the end."""
        return AuditCallRecord(time_ns(), "end", call_id, self, ending, nanoseconds, queued_seconds)

    def of_task(self, task: str, run: int | None = None) -> "CallDescription":
        """Add the stored task that the call became, or that it runs for."""
        members = self.members[:-1] + _members(AuditRecord("", "start", task=task, run=run)) + b"}"
        return replace(self, members=members, task=task, run=run)


class AuditCallRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of a call, from which its JSON or an `AuditRecord` is made, whichever a sink needs."""

    written_at: int
    """In nanoseconds since 1970."""
    event: AuditEvent
    call_id: str
    facts: CallDescription
    ending: Ending | None = None
    nanoseconds: int = 0
    """How long the call took."""
    queued_seconds: float = 0.0

    def plain(self) -> AuditRecord:
        """Make the record that sinks of the container get."""
        facts, ending = self.facts, self.ending
        record = replace(
            facts.template.known,
            time=timestamp(self.written_at),
            event=self.event,
            call_id=self.call_id,
            digest=facts.digest,
            arguments=facts.arguments,
            trace_id=facts.trace_id,
            task=facts.task,
            run=facts.run,
        )
        if ending is None:
            return record
        return replace(
            record,
            outcome=ending.outcome,
            reason=ending.reason,
            rule=ending.rule,
            duration_seconds=self.nanoseconds // 1000 / 1e6,
            queued_seconds=_truncated(self.queued_seconds),
        )


def _encode_call(record: AuditCallRecord) -> bytes:
    """Encode a record of a call, for the most part from JSON that is ready."""
    digits, facts, ending = _encode(record.written_at), record.facts, record.ending
    if ending is None:
        return b"".join(
            (
                b'{"time":"',
                _DATES[digits[:-9]],
                digits[-9:-3],
                b'Z","event":"start","call_id":"',
                record.call_id.encode(),
                facts.template.before,
                facts.members,
            )
        )
    return b"".join(
        (
            b'{"time":"',
            _DATES[digits[:-9]],
            digits[-9:-3],
            b'Z","event":"end","call_id":"',
            record.call_id.encode(),
            facts.template.before,
            _OK if ending is DONE else _ending_members(ending),
            b',"duration_seconds":',
            _encode(record.nanoseconds // 1000 / 1e6),
            b',"queued_seconds":%b' % _encode(_truncated(record.queued_seconds))
            if record.queued_seconds
            else _NOT_QUEUED,
            facts.members,
        )
    )


def _truncated(seconds: float) -> float:
    return int(seconds * 1e6) / 1e6


Record: TypeAlias = AuditRecord | AuditCallRecord
"""What a trail writes."""


def plain_record(record: Record) -> AuditRecord:
    """Return a record in the form that sinks of the container get."""
    return record.plain() if isinstance(record, AuditCallRecord) else record


_NO_MEMBERS: Final = len(_encode(AuditRecord("", "start"))) - 1


def _members(record: AuditRecord) -> bytes:
    """Encode the members of a record behind its time and event, each with a comma before it."""
    return encode_record(record)[_NO_MEMBERS:-1]


def _ending_members(ending: Ending) -> bytes:
    return _members(AuditRecord("", "start", outcome=ending.outcome, reason=ending.reason, rule=ending.rule))


_OK: Final = _ending_members(DONE)
_NOT_QUEUED: Final = b',"queued_seconds":0.0'


Redact: TypeAlias = Callable[[bytes], Raw | None]
"""Encodes valid arguments without sensitive values; None if nothing may be shown."""

_TRACEPARENT: Final = b"traceparent"
_MAX_TEMPLATES: Final = 256
_Caller: TypeAlias = tuple[str | None, str, str | None, str | None, str | None]
"""The name as the caller wrote it, subject, tenant, issuer and address."""


def describer(hashing: Hashing, redactor: Callable[[FeatureSpec], Redact | None]) -> Callable[[FeatureSpec], Describe]:
    """Return a function that compiles how calls of a feature are described."""

    def of(spec: FeatureSpec) -> Describe:
        return _describe(spec, hashing, redactor(spec))

    return of


def _describe(spec: FeatureSpec, hashing: Hashing, redact: Redact | None) -> Describe:
    algorithm, digest_of = hashing.algorithm, hashing.of_arguments
    definition = _definition_digest(spec)
    templates: dict[_Caller, CallTemplate] = {}
    """Those of the last callers, because most callers make many calls."""

    def make_template(key: _Caller) -> CallTemplate:
        if len(templates) >= _MAX_TEMPLATES:
            templates.clear()
        templates[key] = template = _template(spec, definition, key)
        return template

    def describe(call: ToolCall) -> CallDescription:
        principal, raw = call.principal, call.raw
        requested, trace_id, address = _facts_of_request(call)
        key = (requested, principal.subject, principal.tenant, principal.issuer, address)
        template = templates.get(key) or make_template(key)
        digest = f"{algorithm}:{digest_of(canonical_json(raw))}"
        shown = redact(raw) if redact is not None and call.arguments is not None else None
        members = template.after
        if shown is not None or trace_id is not None:
            members = _members(AuditRecord("", "start", arguments=shown, trace_id=trace_id)) + members
        members = b"".join((b',"digest":"', digest.encode(), b'"', members))
        return CallDescription(template, digest, shown, trace_id, members)

    return describe


def _template(spec: FeatureSpec, definition: str, caller: _Caller) -> CallTemplate:
    requested, subject, tenant, issuer, address = caller
    after = AuditRecord("", "start", issuer=issuer, definition=definition, client_address=address)
    before = AuditRecord(
        "",
        "start",
        kind=spec.kind,
        name=spec.name,
        requested=requested,
        toolset=spec.toolset,
        subject=subject,
        tenant=tenant,
    )
    known = replace(before, issuer=issuer, definition=definition, client_address=address)
    return CallTemplate(known, b'"%b' % _members(before), b"%b}" % _members(after))


def _definition_digest(spec: FeatureSpec) -> str:
    """Make the digest of everything that tells a model what a feature does."""
    feature = spec.feature
    shown: list[Any] = [spec.kind, spec.name, feature.title, feature.description]
    if isinstance(spec, ToolSpec):
        shown += [spec.input_schema, spec.output_schema, repr(spec.tool.annotations)]
    return f"sha256:{sha256(msgspec.json.encode(shown, order='deterministic')).hexdigest()[:32]}"


def _facts_of_request(call: ToolCall) -> tuple[str | None, str | None, str | None]:
    """Find the name as the caller wrote it, the trace ID, and the address of the client.

    Most requests have no trace, and a search for the key is quicker than parsing.
    """
    request, name, address = call.caller, None, None
    if isinstance(request, Request):
        name = None if request.head.params.name is UNSET else request.head.params.name
        headers, address = request.exchange.headers, request.exchange.client_address
        # Not `in`, which first tries to use the text as a number, and makes an error of that.
        if request.data.find(_TRACEPARENT) < 0 and (headers is None or _TRACEPARENT not in headers):
            return name, None, address
    trace = call.trace
    return name, None if trace is None else trace.trace_id, address
