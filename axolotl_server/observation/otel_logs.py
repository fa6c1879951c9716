"""OpenTelemetry logs: a handler that sends log records with the trace and the call they belong to."""

import logging
import traceback
from typing import Final

from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider, set_logger_provider

from axolotl_server.observation.json_log import call_fields
from axolotl_server.observation.otel import make_exporters, resource_of
from axolotl_server.observation.tracebacks import TracebackLimit
from axolotl_server.settings.server import ServerIdentity

_EXPORTING: Final = frozenset({"opentelemetry", "requests", "urllib3"})
"""Loggers of the exporters, whose records would cause further records when they are sent."""
_MAX_TEXT_CHARACTERS: Final = 16 * 1024
_SEVERITIES: Final = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
)
_ATTRIBUTES: Final = {
    "kind": "axolotl.kind",
    "name": "axolotl.name",
    "request_id": "jsonrpc.request.id",
    "reference": "axolotl.reference",
    "subject": "enduser.id",
}
"""The fields of JSON lines, and their names as attributes; the trace is part of every record."""


class OtelHandler(logging.Handler):
    """Sends records with the fields of JSON lines: neither arguments of calls nor the values in `extra`."""

    def __init__(self, provider: LoggerProvider, *, subject: bool) -> None:
        super().__init__()
        self._provider = provider
        self._subject = subject
        self._limit = TracebackLimit()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _EXPORTING:
            return
        try:
            self._provider.get_logger(record.name).emit(self._translate(self._limit.apply(record)))
        except Exception:
            self.handleError(record)

    def _translate(self, record: logging.LogRecord) -> LogRecord:
        fields = call_fields(record, subject=self._subject)
        attributes = {_ATTRIBUTES[name]: value for name, value in fields.items() if name in _ATTRIBUTES}
        if record.exc_info and record.exc_info[0] is not None:
            attributes["exception.type"] = record.exc_info[0].__qualname__
            attributes["exception.stacktrace"] = "".join(traceback.format_exception(*record.exc_info))[
                -_MAX_TEXT_CHARACTERS:
            ]
        if record.stack_info:
            attributes["code.stacktrace"] = record.stack_info[-_MAX_TEXT_CHARACTERS:]
        number = next((one for level, one in _SEVERITIES if record.levelno >= level), SeverityNumber.DEBUG)
        return LogRecord(
            timestamp=int(record.created * 1e9),
            severity_text=record.levelname,
            severity_number=number,
            body=record.getMessage()[:_MAX_TEXT_CHARACTERS],
            attributes=attributes,
        )


def logger_provider(identity: ServerIdentity) -> LoggerProvider:
    """Return the process's logger provider; make and set one if there is none.

    Records wait in a queue of `OTEL_BLRP_MAX_QUEUE_SIZE` (2048) records; the oldest ones are dropped if it is full.
    """
    from opentelemetry.sdk._logs import LoggerProvider as SdkProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    current = get_logger_provider()
    if type(current).__name__ != "ProxyLoggerProvider":  # the class is not public
        return current
    provider = SdkProvider(resource=resource_of(identity), shutdown_on_exit=False)
    for exporter in make_exporters("logs"):
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    set_logger_provider(provider)
    return provider
