"""Operations as spans, by the conventions of OpenTelemetry for MCP."""

from collections.abc import Mapping
from hashlib import sha256
from types import TracebackType
from typing import Final

from msgspec import UNSET
from opentelemetry import context as contexts
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

from axolotl_server.observation.metrics import UNKNOWN
from axolotl_server.observation.operations import Operation
from axolotl_server.observation.targets import Target
from axolotl_server.request import Request

__all__ = ["OperationSpan", "Spans"]

_TRACEPARENT: Final = b"traceparent"
_SESSION_DIGITS: Final = 32


class OperationSpan:
    """The span of one operation; it says nothing of arguments, results and the texts of errors."""

    __slots__ = ("_said", "_span", "_token")

    def __init__(self, span: Span, said: Mapping[str, str]) -> None:
        self._span = span
        self._said = said
        """The attributes that it began with."""

    def __enter__(self) -> None:
        """Let spans that are begun in the block be children of this one."""
        self._token = contexts.attach(set_span_in_context(self._span))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not GeneratorExit:  # else thrown away, in a context that knows no token
            contexts.detach(self._token)

    def end(self, operation: Operation, attributes: Mapping[str, str]) -> None:
        """Say how the operation ended, with the labels that its duration has."""
        span = self._span
        if span.is_recording():
            news = dict(attributes.items() - self._said.items())
            if operation.outcome not in ("", "ok"):
                news["axolotl.outcome"] = operation.outcome
            if operation.call is not None and operation.call.reference is not None:
                news["axolotl.reference"] = operation.call.reference
            if news:
                span.set_attributes(news)
                span.update_name(_name_of({**self._said, **news}))
            if "error.type" in news:
                span.set_status(Status(StatusCode.ERROR))
        span.end()


class Spans:
    """Begins the spans of operations in the traces that their callers are in."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("axolotl")
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, operation: Operation, target: Target) -> OperationSpan:
        """Begin a span with what is known of an operation before it runs, for samplers to decide by."""
        request = operation.request
        attributes = _attributes_of(operation, target)
        parent, links = self._parent(request)
        span = self._tracer.start_span(_name_of(attributes), parent, SpanKind.SERVER, attributes, links)
        return OperationSpan(span, attributes)

    def _parent(self, request: Request) -> tuple[Context | None, list[Link]]:
        """Choose the parent: what `_meta` says, else a span that is current here already, else what the headers say."""
        headers = request.exchange.headers
        if _TRACEPARENT not in request.data and (headers is None or _TRACEPARENT not in headers):
            return None, []
        trace = request.trace
        if trace is None:
            return None, []
        around = get_current_span().get_span_context()
        if around.is_valid and headers is not None and headers.get(_TRACEPARENT) == trace.traceparent.encode():
            return None, []  # what serves HTTP has read the header before
        carrier = {"traceparent": trace.traceparent, "tracestate": trace.tracestate or ""}
        # Into an empty context: what a stranger calls its baggage is none of ours.
        return self._propagator.extract(carrier, Context()), [Link(around)] if around.is_valid else []


def _name_of(attributes: Mapping[str, str]) -> str:
    """Name a span by its method and its tool or prompt; URIs, and names that nobody registered, are left out."""
    method = attributes["mcp.method.name"]
    target = attributes.get("gen_ai.tool.name") or attributes.get("gen_ai.prompt.name")
    return method if target in (None, UNKNOWN) else f"{method} {target}"


def _attributes_of(operation: Operation, target: Target) -> dict[str, str]:
    request = operation.request
    over_http = request.exchange.headers is not None
    attributes = {
        "mcp.method.name": operation.method,
        "mcp.protocol.version": request.era.revision.name,
        "network.transport": "tcp" if over_http else "pipe",
    }
    if over_http:
        attributes["network.protocol.name"] = "http"
    if request.head.id is not UNSET:
        attributes["jsonrpc.request.id"] = str(request.head.id)
    session = getattr(request.connection, "id", None)
    if isinstance(session, bytes):
        # The id itself would let whoever reads traces go on with the session.
        attributes["mcp.session.id"] = sha256(session).hexdigest()[:_SESSION_DIGITS]
    names = ("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri")
    attributes.update({name: value for name, value in zip(names, target, strict=True) if value})
    return attributes
