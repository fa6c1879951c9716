"""Log records as JSON lines."""

import json
import logging
import sys
from datetime import UTC, datetime

from axolotl_core.layers import Call
from axolotl_server.layers.call_ending import CURRENT_CALL


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line.

    Everything but printable ASCII is escaped, so that messages can neither break lines nor control a terminal. Neither
    arguments of calls nor the values in `extra` are written.
    """

    def __init__(self, *, subject: bool = False) -> None:
        super().__init__()
        self._subject = subject

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        fields = {
            "time": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= call_fields(record, subject=self._subject)
        fields |= _span_fields()
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        return json.dumps(fields)


def call_fields(record: logging.LogRecord, *, subject: bool) -> dict[str, str]:
    """Describe the call that a record belongs to, if there is one."""
    call = getattr(record, "axolotl_call", None) or CURRENT_CALL.get()
    if not isinstance(call, Call):
        return {}
    fields = {"kind": str(call.spec.kind), "name": call.spec.name, "request_id": str(call.request_id)}
    if call.reference is not None:
        fields["reference"] = call.reference
    trace = call.trace
    if trace is not None:
        fields["trace_id"] = trace.trace_id
    if subject:
        fields["subject"] = call.principal.subject
    return fields


def _span_fields() -> dict[str, str]:
    """Return the IDs of the current span, if the process uses OpenTelemetry."""
    tracing = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return {}
    current = tracing.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": format(current.trace_id, "032x"), "span_id": format(current.span_id, "016x")}
