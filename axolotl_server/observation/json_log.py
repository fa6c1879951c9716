"""The log as JSON lines."""

import json
import logging
import sys
from datetime import UTC, datetime

from axolotl_core.layers import ToolCall
from axolotl_server.layers.call_ending import CURRENT_CALL


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object on one line.

    Everything outside of printable ASCII is escaped, so that nothing in a message ends its line or steers a terminal,
    whatever the stream's encoding is. Nothing of a call's arguments is written, nor what `extra` holds.
    """

    def __init__(self, *, subject: bool = False) -> None:
        super().__init__()
        self._subject = subject

    def format(self, record: logging.LogRecord) -> str:
        """Write the line."""
        fields = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        call = getattr(record, "axolotl_call", None) or CURRENT_CALL.get()
        if isinstance(call, ToolCall):
            fields |= self._call_fields(call)
        fields |= _span_fields()
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        return json.dumps(fields)

    def _call_fields(self, call: ToolCall) -> dict[str, str]:
        fields = {"kind": str(call.spec.kind), "name": call.spec.name, "request_id": str(call.request_id)}
        if call.reference is not None:
            fields["reference"] = call.reference
        trace = call.trace
        if trace is not None:
            fields["trace_id"] = trace.trace_id
        if self._subject:
            fields["subject"] = call.principal.subject
        return fields


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _span_fields() -> dict[str, str]:
    """Give the span that is current here, where the process has any."""
    tracing = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return {}
    current = tracing.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": format(current.trace_id, "032x"), "span_id": format(current.span_id, "016x")}
