"""OpenTelemetry: spans, metrics and logs, with providers configured by the standard environment variables."""

import logging
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import UNSET
from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider, set_logger_provider
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from axolotl_core.errors import ConfigurationError
from axolotl_server.observation.json_log import call_fields
from axolotl_server.observation.metrics import BUCKETS, UNKNOWN, Metric, MetricValues
from axolotl_server.observation.observer import Operation, Target
from axolotl_server.observation.tracebacks import TracebackLimit
from axolotl_server.protocol.request import Request
from axolotl_server.settings.server import ServerIdentity

_TRACEPARENT: Final = b"traceparent"
_SESSION_DIGITS: Final = 32
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


class OperationSpan:
    """The span of one operation; it contains no arguments, results or error messages."""

    __slots__ = ("_attributes", "_span", "_token")

    def __init__(self, span: Span, attributes: Mapping[str, str]) -> None:
        self._span = span
        self._attributes = attributes
        self._token = contexts.attach(set_span_in_context(span))  # spans that begin now are its children

    def detach(self) -> None:
        """Make the span that was current before current again."""
        contexts.detach(self._token)

    def end(self, operation: Operation, labels: Mapping[str, str]) -> None:
        """End the span with the labels of the operation's duration."""
        span = self._span
        if span.is_recording():
            span.set_attributes(labels)
            if operation.outcome not in ("", "ok"):
                span.set_attribute("axolotl.outcome", operation.outcome)
            if operation.call is not None and operation.call.reference is not None:
                span.set_attribute("axolotl.reference", operation.call.reference)
            span.update_name(_name_of({**self._attributes, **labels}))
            if "error.type" in labels:
                span.set_status(Status(StatusCode.ERROR))
        span.end()


class Spans:
    """Starts the spans of operations, in the traces of their callers."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("axolotl")
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, operation: Operation, target: Target) -> OperationSpan:
        """Start a span with everything that is known before the operation runs, for samplers."""
        request = operation.request
        attributes = _attributes_of(operation.method, request, target)
        parent, links = self._parent(request)
        span = self._tracer.start_span(_name_of(attributes), parent, SpanKind.SERVER, attributes, links)
        return OperationSpan(span, attributes)

    def current(self) -> str:
        """Return the current span in the form of a `traceparent`; empty if there is none."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get(_TRACEPARENT.decode(), "")

    @contextmanager
    def apart(self, name: str, attributes: Mapping[str, str | int], origin: str) -> Iterator[Callable[[str], object]]:
        """Make the block a span of its own trace, linked to the span that caused it; takes the outcome."""
        cause = get_current_span(self._propagator.extract({_TRACEPARENT.decode(): origin}, Context()))
        links = [Link(cause.get_span_context())] if cause.get_span_context().is_valid else []
        span = self._tracer.start_span(name, Context(), SpanKind.CONSUMER, attributes, links)
        token = contexts.attach(set_span_in_context(span))

        def end(outcome: str) -> None:
            span.set_attribute("axolotl.outcome", outcome)
            if outcome == "failed":
                span.set_status(Status(StatusCode.ERROR))

        try:
            yield end
        finally:
            contexts.detach(token)
            span.end()

    def _parent(self, request: Request) -> tuple[Context | None, list[Link]]:
        """Choose the parent: the trace in `_meta`, a span that is current already, or the trace in the headers."""
        headers = request.exchange.headers
        if _TRACEPARENT not in request.data and (headers is None or _TRACEPARENT not in headers):
            return None, []
        trace = request.trace
        if trace is None:
            return None, []
        current = get_current_span().get_span_context()
        if current.is_valid and headers is not None and headers.get(_TRACEPARENT) == trace.traceparent.encode():
            return None, []  # the HTTP instrumentation has read the header already
        carrier = {"traceparent": trace.traceparent, "tracestate": trace.tracestate or ""}
        # Into an empty context, so that baggage of clients is not adopted.
        return self._propagator.extract(carrier, Context()), [Link(current)] if current.is_valid else []


def _name_of(attributes: Mapping[str, str]) -> str:
    """Name a span after its method and its tool or prompt, but not after URIs and unknown names."""
    method = attributes["mcp.method.name"]
    target = attributes.get("gen_ai.tool.name") or attributes.get("gen_ai.prompt.name")
    return method if target in (None, UNKNOWN) else f"{method} {target}"


def _attributes_of(method: str, request: Request, target: Target) -> dict[str, str]:
    over_http = request.exchange.headers is not None
    attributes = {
        "mcp.method.name": method,
        "mcp.protocol.version": request.era.revision.name,
        "network.transport": "tcp" if over_http else "pipe",
    }
    if over_http:
        attributes["network.protocol.name"] = "http"
    names = ("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri")
    attributes.update({name: value for name, value in zip(names, target, strict=True) if value})
    if request.head.id is not UNSET:
        attributes["jsonrpc.request.id"] = str(request.head.id)
    session = getattr(request.connection, "id", None)
    if isinstance(session, bytes):
        # With the ID itself, anybody who reads traces could use the session.
        attributes["mcp.session.id"] = sha256(session).hexdigest()[:_SESSION_DIGITS]
    return attributes


Signal: TypeAlias = Literal["traces", "metrics", "logs"]

_OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def make_exporters(signal: Signal) -> Iterator[Any]:
    """Make the exporters in the environment variable; OTLP over HTTP if it is not set.

    Raises ConfigurationError if one does not exist or cannot be made.
    """
    variable, group = f"OTEL_{signal.upper()}_EXPORTER", f"opentelemetry_{signal}_exporter"
    chosen = [name.strip() for name in (os.environ.get(variable) or "otlp").split(",")]
    for name in [_registered_name(name, signal) for name in chosen if name not in ("", "none")]:
        found = next(iter(entry_points(group=group, name=name)), None)
        if found is None:
            known = ", ".join(sorted({"none", "otlp", *(entry.name for entry in entry_points(group=group))}))
            raise ConfigurationError(
                f"{variable} names the exporter {name!r}, which is not installed; installed are: {known}"
            )
        try:
            exporter = found.load()()
        except Exception as error:
            raise ConfigurationError(f"The exporter {name!r} of {variable} cannot be made: {error}") from error
        yield exporter


def _registered_name(name: str, signal: Signal) -> str:
    if name != "otlp":
        return name
    variable, of_all_signals = f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = os.environ.get(variable) or os.environ.get(of_all_signals) or "http/protobuf"
    if protocol not in _OTLP:
        known = ", ".join(_OTLP)
        raise ConfigurationError(f"{variable} or {of_all_signals} is {protocol!r}: use one of {known}")
    return _OTLP[protocol]


def tracer_provider(identity: ServerIdentity) -> trace.TracerProvider:
    """Return the process's tracer provider; make and set one if there is none.

    It is never shut down, because the process may run other servers; each of them flushes it. Raises ConfigurationError
    if an exporter cannot be made.
    """
    current = trace.get_tracer_provider()
    if not isinstance(current, trace.ProxyTracerProvider):
        return current
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource_of(identity), shutdown_on_exit=False)
    for exporter in make_exporters("traces"):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def meter_provider(identity: ServerIdentity) -> metrics.MeterProvider:
    """Return the process's meter provider, in the same way."""
    current = metrics.get_meter_provider()
    if type(current).__name__ != "_ProxyMeterProvider":  # the class is not public, unlike the one for tracers
        return current
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    made = make_exporters("metrics")
    readers = [one if isinstance(one, MetricReader) else PeriodicExportingMetricReader(one) for one in made]
    provider = MeterProvider(readers, resource=resource_of(identity), shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    return provider


def resource_of(identity: ServerIdentity) -> Any:
    """Describe the server: by the environment variables, or by its own name and version."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

    resource = Resource.create({})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: identity.name}))
    return Resource({SERVICE_VERSION: identity.version}).merge(resource)


class Instruments:
    """The instruments of one provider, which all servers of a process share."""

    def __init__(self, provider: MeterProvider) -> None:
        self._meter = provider.get_meter("axolotl")
        self._servers: set[MetricValues] = set()
        self._known: set[str] = set()
        self._histograms: dict[str, Histogram] = {}

    def add(self, values: MetricValues) -> None:
        """Start sending the metrics of a server, those that it adds later included."""
        self._servers.add(values)
        values.on_add = partial(self._send, values)
        for metric in values.metrics:
            self._send(values, metric)

    def _send(self, values: MetricValues, metric: Metric) -> None:
        name, unit, text = metric.name, metric.unit, metric.description
        is_new = name not in self._known
        self._known.add(name)
        if metric.kind == "histogram":
            if is_new:
                self._histograms[name] = self._meter.create_histogram(
                    name, unit, text, explicit_bucket_boundaries_advisory=list(BUCKETS)
                )
            values.histograms[name].export = self._histograms[name].record
        elif is_new and metric.kind == "counter":
            self._meter.create_observable_counter(name, [self._reader(metric)], unit, text)
        elif is_new:
            self._meter.create_observable_up_down_counter(name, [self._reader(metric)], unit, text)

    def remove(self, values: MetricValues) -> None:
        """Stop sending the metrics of a server."""
        self._servers.discard(values)

    def _reader(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            for values in tuple(self._servers):
                try:
                    readings = values.read(metric.name)
                except RuntimeError:  # a value changes in another thread at this moment: it is read the next time
                    continue
                for labels, value in readings:
                    yield Observation(value, dict(zip(metric.labels, labels, strict=True)))

        return read


_INSTRUMENTS: Final[WeakKeyDictionary[MeterProvider, Instruments]] = WeakKeyDictionary()


def instruments_of(provider: MeterProvider) -> Instruments:
    """Return the instruments of a provider, which are made when they are first needed."""
    if provider not in _INSTRUMENTS:
        _INSTRUMENTS[provider] = Instruments(provider)
    return _INSTRUMENTS[provider]


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
