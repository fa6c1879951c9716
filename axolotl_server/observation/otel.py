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
from axolotl_server.observation.metrics import UNKNOWN
from axolotl_server.observation.observer import Operation, Target
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
            make = found.load()
        except ImportError as error:
            raise ConfigurationError(f"The exporter {name!r} of {variable} cannot be imported: {error}") from error
        try:
            exporter = make()
        except Exception as error:
            raise ConfigurationError(f"The exporter {make.__name__} cannot be made: {error}") from error
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
