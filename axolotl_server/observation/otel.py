"""OpenTelemetry: spans, and providers configured by the standard environment variables."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET
from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.environment_variables import OTEL_LOGS_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_TRACES_EXPORTER
from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_OTLP_LOGS_PROTOCOL,
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
    OTEL_EXPORTER_OTLP_PROTOCOL,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
)
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
from axolotl_core.task_engine import TaskRecord
from axolotl_server.observation.metrics import UNKNOWN
from axolotl_server.observation.observer import Operation, Target
from axolotl_server.protocol.eras.era import IEra
from axolotl_server.protocol.request import Request
from axolotl_server.settings.server import ServerIdentity

_TRACEPARENT: Final = b"traceparent"
_SESSION_DIGITS: Final = 32


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
            span.set_attributes({**labels, **_added_by_call(operation)})
            span.update_name(_name_of({**self._attributes, **labels}))
            if "error.type" in labels:
                span.set_status(Status(StatusCode.ERROR))
        span.end()


def _added_by_call(operation: Operation) -> Mapping[str, str]:
    added = {}
    if operation.outcome not in ("", "ok"):
        added["axolotl.outcome"] = operation.outcome
    if operation.call is not None and operation.call.reference is not None:
        added["axolotl.reference"] = operation.call.reference
    return added


class Spans:
    """Starts the spans of operations, in the traces of their callers."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("axolotl")
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, operation: Operation, target: Target) -> OperationSpan:
        """Start a span with everything that is known before the operation runs, for samplers."""
        request = operation.request
        constants = _constants_of(operation.method, request.era, request.exchange.headers is not None, target)
        attributes = {**constants, **_attributes_of(request)}
        parent, links = self._parent(request)
        span = self._tracer.start_span(_name_of(attributes), parent, SpanKind.SERVER, attributes, links)
        return OperationSpan(span, attributes)

    def current(self) -> str:
        """Return the current span in the form of a `traceparent`; empty if there is none."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get(_TRACEPARENT.decode(), "")

    @contextmanager
    def run_of_task(self, task: TaskRecord, submitter: str) -> Iterator[Callable[[str], object]]:
        """Make the block a span of its own trace, linked to the span that submitted the task; takes the ending."""
        origin = get_current_span(self._propagator.extract({_TRACEPARENT.decode(): submitter}, Context()))
        links = [Link(origin.get_span_context())] if origin.get_span_context().is_valid else []
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": task.tool,
            "axolotl.task.id": task.id,
            "axolotl.task.run": task.run,
        }
        name, kind = f"task {task.tool}", SpanKind.CONSUMER
        span = self._tracer.start_span(name, Context(), kind, attributes, links)
        token = contexts.attach(set_span_in_context(span))

        def end(ending: str) -> None:
            span.set_attribute("axolotl.outcome", ending)
            if ending == "failed":
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


def _constants_of(method: str, era: IEra, over_http: bool, target: Target) -> dict[str, str]:
    attributes = {
        "mcp.method.name": method,
        "mcp.protocol.version": era.revision.name,
        "network.transport": "tcp" if over_http else "pipe",
    }
    if over_http:
        attributes["network.protocol.name"] = "http"
    names = ("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri")
    attributes.update({name: value for name, value in zip(names, target, strict=True) if value})
    return attributes


def _attributes_of(request: Request) -> dict[str, str]:
    """Return the attributes that differ from request to request."""
    attributes = {}
    if request.head.id is not UNSET:
        attributes["jsonrpc.request.id"] = str(request.head.id)
    session = getattr(request.connection, "id", None)
    if isinstance(session, bytes):
        # With the ID itself, anybody who reads traces could use the session.
        attributes["mcp.session.id"] = sha256(session).hexdigest()[:_SESSION_DIGITS]
    return attributes


Signal: TypeAlias = Literal["traces", "metrics", "logs"]

_CHOICE: Final[dict[Signal, str]] = {
    "traces": OTEL_TRACES_EXPORTER,
    "metrics": OTEL_METRICS_EXPORTER,
    "logs": OTEL_LOGS_EXPORTER,
}
_PROTOCOL: Final[dict[Signal, str]] = {
    "traces": OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
    "metrics": OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
    "logs": OTEL_EXPORTER_OTLP_LOGS_PROTOCOL,
}
_OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def exporters_of(signal: Signal) -> Iterator[Callable[[], Any]]:
    """Return a factory for each exporter in the environment variable; OTLP over HTTP if it is not set.

    Raises ConfigurationError if there is no such exporter.
    """
    variable = _CHOICE[signal]
    names = [name.strip() for name in (os.environ.get(variable) or "otlp").split(",")]
    for name in filter(None, names):
        if name != "none":
            yield _load_exporter(_registered_name(name, signal), signal, variable)


def _registered_name(name: str, signal: Signal) -> str:
    if name != "otlp":
        return name
    variable = _PROTOCOL[signal]
    protocol = os.environ.get(variable) or os.environ.get(OTEL_EXPORTER_OTLP_PROTOCOL) or "http/protobuf"
    if protocol not in _OTLP:
        known = ", ".join(_OTLP)
        raise ConfigurationError(f"{variable} or {OTEL_EXPORTER_OTLP_PROTOCOL} is {protocol!r}: use one of {known}")
    return _OTLP[protocol]


def _load_exporter(name: str, signal: Signal, variable: str) -> Callable[[], Any]:
    group = f"opentelemetry_{signal}_exporter"
    found = next(iter(entry_points(group=group, name=name)), None)
    if found is None:
        known = ", ".join(sorted({"none", "otlp", *(entry.name for entry in entry_points(group=group))}))
        raise ConfigurationError(
            f"{variable} names the exporter {name!r}, which is not installed; installed are: {known}"
        )
    try:
        made: Callable[[], Any] = found.load()
    except ImportError as error:
        raise ConfigurationError(f"The exporter {name!r} of {variable} cannot be imported: {error}") from error
    return made


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
    for make in exporters_of("traces"):
        provider.add_span_processor(BatchSpanProcessor(make_exporter(make)))
    trace.set_tracer_provider(provider)
    return provider


def meter_provider(identity: ServerIdentity) -> metrics.MeterProvider:
    """Return the process's meter provider, in the same way."""
    current = metrics.get_meter_provider()
    if type(current).__name__ != "_ProxyMeterProvider":  # the class is not public, unlike the one for tracers
        return current
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    made = [make_exporter(make) for make in exporters_of("metrics")]
    readers = [one if isinstance(one, MetricReader) else PeriodicExportingMetricReader(one) for one in made]
    provider = MeterProvider(readers, resource=resource_of(identity), shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    return provider


def make_exporter(make: Any) -> Any:
    """Make an exporter; raises ConfigurationError if that fails."""
    try:
        return make()
    except Exception as error:
        raise ConfigurationError(f"The exporter {make.__name__} cannot be made: {error}") from error


def resource_of(identity: ServerIdentity) -> Any:
    """Describe the server: by the environment variables, or by its own name and version."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

    resource = Resource.create({})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: identity.name}))
    return Resource({SERVICE_VERSION: identity.version}).merge(resource)
