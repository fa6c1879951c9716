"""Audit records: how they are made from calls, and how they are encoded."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call
from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_core.protocol.wire import canonical_json
from axolotl_server.audit.chain import Hashing
from axolotl_server.layers.audit import Describe
from axolotl_server.protocol.request import Request

_DELETE: Final = 0x7F
_UNSAFE: Final = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
"""Characters that JSON does not escape, but that some programs treat as a line break or a control character."""

_encode: Final = msgspec.json.Encoder().encode


def encode_record(record: AuditRecord) -> bytes:
    """Encode a record as a JSON object without any kind of line break."""
    try:
        encoded = _encode(record)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        encoded = _encode(without_surrogates(msgspec.structs.asdict(record)))
    return encoded if encoded.isascii() and _DELETE not in encoded else _UNSAFE.sub(_escape, encoded)


def encode_note(event: str, **details: Any) -> bytes:
    """Encode a record about the log itself."""
    return _UNSAFE.sub(_escape, _encode({"time": timestamp(), "event": event, **details}))


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def without_surrogates(fields: dict[str, Any]) -> dict[str, Any]:
    """Escape lone surrogates in the texts of a record, and leave out fields without a value."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


Redact: TypeAlias = Callable[[bytes], Raw | None]
"""Encodes valid arguments without sensitive values; None if nothing may be shown."""

_TRACEPARENT: Final = b"traceparent"


def describer(spec: FeatureSpec, hashing: Hashing, redactor: Callable[[FeatureSpec], Redact | None]) -> Describe:
    """Return a function that makes records of a feature's calls."""
    algorithm, digest_of, redact = hashing.algorithm, hashing.of_arguments, redactor(spec)
    feature = spec.feature
    shown: list[Any] = [spec.kind, spec.name, feature.title, feature.description]
    if isinstance(spec, ToolSpec):
        shown += [spec.input_schema, spec.output_schema, repr(spec.tool.annotations)]
    definition = f"sha256:{sha256(msgspec.json.encode(shown, order='deterministic')).hexdigest()[:32]}"

    def describe(call: Call) -> AuditRecord:
        principal, raw = call.principal, call.raw
        requested, trace_id, address = _facts_of_request(call)
        return AuditRecord(
            "",
            "start",
            kind=spec.kind,
            name=spec.name,
            requested=requested,
            toolset=spec.toolset,
            subject=principal.subject,
            tenant=principal.tenant,
            digest=f"{algorithm}:{digest_of(canonical_json(raw))}",
            arguments=redact(raw) if redact is not None and call.arguments is not None else None,
            trace_id=trace_id,
            issuer=principal.issuer,
            definition=definition,
            client_address=address,
        )

    return describe


def _facts_of_request(call: Call) -> tuple[str | None, str | None, str | None]:
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
