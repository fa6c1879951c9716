"""The observer that measures and traces operations."""

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ProtocolError
from axolotl_core.layers import Call
from axolotl_core.protocol import codes
from axolotl_server.calls.feature_method import FeatureMethod
from axolotl_server.layers.call_ending import Ending
from axolotl_server.observation.metrics import UNKNOWN, MetricValues
from axolotl_server.protocol.connection import Connection, IObserver
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.observation.otel import OperationSpan, Spans

_CALL: Final = "tools/call"
_LISTEN: Final = "subscriptions/listen"
_INTERNAL: Final = str(codes.INTERNAL_ERROR)


class Failure(NamedTuple):
    """The failure of an operation in the terms of the conventions for MCP; empty if it succeeded."""

    error_type: str = ""
    code: str = ""
    """The JSON-RPC code, if the answer is an error."""


SUCCESS: Final = Failure()
_TOOL_ERROR: Final = Failure("tool_error")
_CANCELLED: Final = Failure("cancelled")
_HIDDEN: Final = Failure(_INTERNAL, _INTERNAL)


class Operation(msgspec.Struct, eq=False):
    """A request that is being answered."""

    method: str
    """The registered name, or `_unknown`."""
    request: Request
    began: float
    call: Call | None = None
    """The call that was run for it, once that has ended."""
    outcome: str = ""
    has_ended: bool = False
    span: "OperationSpan | None" = None


def failure_of(method: str, request: Request, result: bytes | None, error: BaseException | None) -> Failure:
    """Tell how the handler answers a request."""
    if isinstance(error, ProtocolError):
        code = str(request.era.code_of(error))
        return Failure(code, code)
    if error is not None:
        return _CANCELLED if isinstance(error, asyncio.CancelledError | GeneratorExit) else _HIDDEN
    if result is None:
        return SUCCESS if method == _LISTEN else _CANCELLED
    return _TOOL_ERROR if request.is_error else SUCCESS


def failure_of_stop(method: str, call: Call) -> Failure:
    """Tell how the caller of an abandoned call is answered."""
    if call.cancel_reason in (CancelReason.CLIENT, CancelReason.OPERATOR, CancelReason.DISCONNECT):
        return _CANCELLED
    return _TOOL_ERROR if method == _CALL else _HIDDEN


Target: TypeAlias = tuple[str, str, str, str]
"""The GenAI operation, the tool, the prompt, and the resource or its template; empty if there is none."""

NO_TARGET: Target = ("", "", "", "")


def _tool(name: str) -> Target:
    return "execute_tool", name, "", ""


def _prompt(name: str) -> Target:
    return "", "", name, ""


def _resource(name: str) -> Target:
    return "", "", "", name


_MAKERS = {
    "tools/call": _tool,
    "prompts/get": _prompt,
    "resources/read": _resource,
    "resources/subscribe": _resource,
    "resources/unsubscribe": _resource,
}


class Targets:
    """Finds the registered name of the feature that a request names."""

    def __init__(self, feature_methods: Callable[[], Mapping[str, FeatureMethod]]) -> None:
        """Take a function: the methods are made after the observers."""
        self._feature_methods = feature_methods

    def expected(self, method: str, request: Request) -> Target:
        """Find the target before anything has run, if one lookup is enough."""
        if method not in ("tools/call", "prompts/get") or request.head.params.name is UNSET:
            return NO_TARGET
        target = request.target = request.target or self._feature_methods()[method].locate(request)
        return NO_TARGET if target.binding is None else _MAKERS[method](target.binding.spec.name)

    def of(self, operation: Operation) -> Target:
        """Return the target of an operation that has ended."""
        make = _MAKERS.get(operation.method)
        if make is None:
            return NO_TARGET
        return make(self._find(operation) if operation.call is None else operation.call.spec.name)

    def _find(self, operation: Operation) -> str:
        """Find the feature of a request that ran no code."""
        request, method = operation.request, operation.method
        if method in ("tools/call", "prompts/get"):
            return "".join(self.expected(method, request)[1:]) or UNKNOWN
        try:
            target = request.target or self._feature_methods()["resources/read"].locate(request)
        except ProtocolError:
            return UNKNOWN
        return UNKNOWN if target.binding is None else target.binding.spec.name


class OperationObserver(IObserver):
    """Measures operations, and makes spans of them if there is a tracer."""

    def __init__(self, values: MetricValues, targets: Targets, spans: "Spans | None" = None) -> None:
        self._values = values
        self._targets = targets
        self._spans = spans
        self._running: dict[Request, Operation] = {}

    def request_begun(self, request: Request, method: str | None) -> None:
        operation = self._running[request] = Operation(method or UNKNOWN, request, perf_counter())
        if self._spans is not None:
            target = NO_TARGET if method is None else self._targets.expected(method, request)
            operation.span = self._spans.begin(operation, target)

    def request_answered(self, request: Request, result: bytes | None, error: BaseException | None) -> None:
        operation = self._running.pop(request)
        if not operation.has_ended:
            is_plain = error is None and result is not None and not request.is_error
            self._end(operation, SUCCESS if is_plain else failure_of(operation.method, request, result, error))
        if operation.span is not None and not isinstance(error, GeneratorExit):
            operation.span.detach()  # a discarded coroutine ends in another context

    def call_ended(self, call: Call, ending: Ending) -> None:
        """Count a call; the operation of an abandoned call ends with it."""
        spec, values = call.spec, self._values
        values.calls.add((spec.kind, spec.name, ending.outcome))
        if ending.outcome == "overloaded":
            values.sheds.add(("circuit" if ending.reason == "circuit_open" else "concurrency",))
        if call.queued_seconds:
            values.queues.series((spec.kind, spec.name)).record(call.queued_seconds)
        request = call.caller
        operation = self._running.get(request) if isinstance(request, Request) else None
        if operation is None:  # it runs as a task, and its request was answered long ago
            return
        operation.call, operation.outcome = call, ending.outcome
        if call.abandoned:
            self._end(operation, failure_of_stop(operation.method, call))

    def connection_closed(self, connection: Connection) -> None:
        """Record how long a session lasted; a connection without a handshake is not a session."""
        if connection.era is not None and connection.opened_at is not None:
            seconds = perf_counter() - connection.opened_at
            self._values.sessions.series((connection.era.revision.name,)).record(seconds)

    def _end(self, operation: Operation, failure: Failure) -> None:
        seconds = perf_counter() - operation.began
        operation.has_ended = True
        request = operation.request
        transport = "pipe" if request.exchange.headers is None else "tcp"
        labels = (operation.method, *self._targets.of(operation), *failure, request.era.revision.name, transport)
        series = self._values.operations.series(labels)
        series.record(seconds)
        if operation.span is not None:
            operation.span.end(operation, series.attributes)
