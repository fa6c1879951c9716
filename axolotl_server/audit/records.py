"""Audit records: how they are made from calls, and how they are encoded."""

import re
from collections.abc import Callable
from hashlib import sha256
from time import gmtime, strftime, time
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


_THREE_DIGITS: Final = tuple(f"{number:03}" for number in range(1000))
"""To take the digits from a table is quicker than to format a number."""


def _clock() -> Callable[[], str]:
    """Make a clock that formats date and time only once per second."""
    last_second, text = -1, ""

    def now() -> str:
        nonlocal last_second, text
        moment = time()  # a float has room for a quarter of a microsecond, and is quicker than long integers
        second = int(moment)
        if second != last_second:
            last_second, text = second, strftime("%Y-%m-%dT%H:%M:%S.", gmtime(second))
        microsecond = int((moment - second) * 1e6)
        millisecond = microsecond // 1000
        return f"{text}{_THREE_DIGITS[millisecond]}{_THREE_DIGITS[microsecond - millisecond * 1000]}Z"

    return now


timestamp: Final = _clock()
"""Returns the time in UTC, as RFC 3339 with microseconds."""


_encode: Final = msgspec.json.Encoder().encode
_UNSAFE: Final = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
"""Characters that JSON does not escape, but that some programs treat as a line break or a control character."""


def encode_record(record: "Record") -> bytes:
    """Encode a record as a JSON object without any kind of line break."""
    if type(record) is CallRecord:
        return record.encoded()
    assert isinstance(record, AuditRecord)
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
    """The members that the records of many calls have in common, in the text of their JSON."""

    known: AuditRecord
    """The same as a record."""
    before: str
    after: str
    """What is before and after the members that differ."""


class CallFacts(msgspec.Struct, frozen=True, gc=False):
    """What the records of one call have in common."""

    template: CallTemplate
    digest: str
    arguments: Raw | None
    trace_id: str | None
    text: str
    """All members after the ending."""
    task: str | None = None
    run: int | None = None

    def started(self, call_id: str) -> "CallRecord":
        """Make the record of the start."""
        return CallRecord(timestamp(), "start", call_id, self)

    def ended(self, call_id: str, ending: Ending, seconds: float, queued_seconds: float) -> "CallRecord":
        """Make the record of the end."""
        return CallRecord(timestamp(), "end", call_id, self, ending, seconds, queued_seconds)

    def of_task(self, task: str, run: int | None = None) -> "CallFacts":
        """Add the stored task that the call became, or that it runs for."""
        text = self.text + _members(AuditRecord("", "start", task=task, run=run))
        return replace(self, text=text, task=task, run=run)


class CallRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of a call, from which the text or an `AuditRecord` is made, whichever a sink needs."""

    time: str
    event: AuditEvent
    call_id: str
    facts: CallFacts
    ending: Ending | None = None
    seconds: float = 0.0
    queued_seconds: float = 0.0

    def encoded(self) -> bytes:
        """Encode the record as `encode_record` does, with texts that are ready."""
        facts, ending = self.facts, self.ending
        if ending is None:
            text = (
                f'{{"time":"{self.time}","event":"start","call_id":"{self.call_id}"'
                f"{facts.template.before}{facts.text}}}"
            )
        else:
            text = (
                f'{{"time":"{self.time}","event":"end","call_id":"{self.call_id}"{facts.template.before}'
                f'{_OK if ending is DONE else _ending_members(ending)},"duration_seconds":{_decimal(self.seconds)},'
                f'"queued_seconds":{_decimal(self.queued_seconds)}{facts.text}}}'
            )
        return text.encode()

    def plain(self) -> AuditRecord:
        """Make the record that sinks of the container get."""
        facts, ending = self.facts, self.ending
        record = replace(
            facts.template.known,
            time=self.time,
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
            duration_seconds=float(_decimal(self.seconds)),
            queued_seconds=float(_decimal(self.queued_seconds)),
        )


Record: TypeAlias = AuditRecord | CallRecord
"""What a trail writes."""


def plain_record(record: Record) -> AuditRecord:
    """Give a record in the form that sinks of the container get."""
    return record.plain() if isinstance(record, CallRecord) else record


_NO_MEMBERS: Final = len(_encode(AuditRecord("", "start"))) - 1


def _members(record: AuditRecord) -> str:
    """Encode the members of a record behind its time and event, each with a comma before it."""
    return encode_record(record)[_NO_MEMBERS:-1].decode()


def _ending_members(ending: Ending) -> str:
    return _members(AuditRecord("", "start", outcome=ending.outcome, reason=ending.reason, rule=ending.rule))


_OK: Final = _ending_members(DONE)


def _decimal(seconds: float) -> str:
    """Write a duration as a number with microseconds; Python may write a short one with an exponent."""
    if not seconds:
        return "0.0"
    microseconds = int(seconds * 1e6)
    milliseconds = microseconds // 1000
    rest = _THREE_DIGITS[microseconds - milliseconds * 1000]
    if milliseconds < 1000:
        return f"0.{_THREE_DIGITS[milliseconds]}{rest}"
    return f"{milliseconds // 1000}.{_THREE_DIGITS[milliseconds % 1000]}{rest}"


Redact: TypeAlias = Callable[[bytes], Raw | None]
"""Encodes valid arguments without sensitive values; None if nothing may be shown."""

_TRACEPARENT: Final = b"traceparent"
_MAX_TEMPLATES: Final = 256


def describer(hashing: Hashing, redactor: Callable[[FeatureSpec], Redact | None]) -> Callable[[FeatureSpec], Describe]:
    """Return a function that compiles how calls of a feature are described."""

    def of(spec: FeatureSpec) -> Describe:
        return _describe(spec, hashing, redactor(spec))

    return of


def _describe(spec: FeatureSpec, hashing: Hashing, redact: Redact | None) -> Describe:
    algorithm, digest_of = hashing.algorithm, hashing.of_arguments
    definition = _definition_digest(spec)
    templates: dict[tuple[str | None, ...], CallTemplate] = {}
    """Those of the last callers, because most callers make many calls."""

    def make_template(key: tuple[str | None, ...]) -> CallTemplate:
        if len(templates) >= _MAX_TEMPLATES:
            templates.clear()
        templates[key] = template = _template(spec, definition, *key)
        return template

    def describe(call: ToolCall) -> CallFacts:
        principal, raw = call.principal, call.raw
        requested, trace_id, address = _facts_of_request(call)
        key = (requested, principal.subject, principal.tenant, principal.issuer, address)
        template = templates.get(key) or make_template(key)
        digest = f"{algorithm}:{digest_of(canonical_json(raw))}"
        shown = redact(raw) if redact is not None and call.arguments is not None else None
        if shown is None and trace_id is None:
            text = f',"digest":"{digest}"{template.after}'
        else:
            own = _members(AuditRecord("", "start", digest=digest, arguments=shown, trace_id=trace_id))
            text = own + template.after
        return CallFacts(template, digest, shown, trace_id, text)

    return describe


def _template(
    spec: FeatureSpec,
    definition: str,
    requested: str | None,
    subject: str | None,
    tenant: str | None,
    issuer: str | None,
    address: str | None,
) -> CallTemplate:
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
    return CallTemplate(known, _members(before), _members(after))


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
