"""From a call to its record."""

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import UNSET, Raw

from axolotl_core.audit import AuditEvent, AuditRecord
from axolotl_core.canonical import canonical_json
from axolotl_core.layer import ToolCall
from axolotl_core.spec import FeatureSpec
from axolotl_server.audit.hashing import Hashing
from axolotl_server.audit.timestamps import timestamp
from axolotl_server.layers.audit import Describe
from axolotl_server.layers.audit_outcomes import Ending
from axolotl_server.request import Request

__all__ = ["Redact", "describer"]

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
