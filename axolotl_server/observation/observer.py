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


_NAMED: Final = frozenset({"tools/call", "prompts/get"})
_TARGETED: Final = _NAMED | {"resources/read", "resources/subscribe", "resources/unsubscribe"}


def _target(method: str, name: str) -> Target:
    if method == _CALL:
        return "execute_tool", name, "", ""
    return ("", "", name, "") if method in _NAMED else ("", "", "", name)


class OperationObserver(IObserver):
    """Measures operations, and makes spans of them if there is a tracer."""

    def __init__(
        self,
        values: MetricValues,
        feature_methods: Callable[[], Mapping[str, FeatureMethod]],
        spans: "Spans | None" = None,
    ) -> None:
        """Take a function, because the methods are made after the observers."""
        self._values = values
        self._feature_methods = feature_methods
        self._spans = spans
        self._running: dict[Request, Operation] = {}

    def request_begun(self, request: Request, method: str | None) -> None:
        operation = self._running[request] = Operation(method or UNKNOWN, request, perf_counter())
        if self._spans is not None:
            target = NO_TARGET if method is None else self._expected(method, request)
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
        labels = (operation.method, *self._target_of(operation), *failure, request.era.revision.name, transport)
        series = self._values.operations.series(labels)
        series.record(seconds)
        if operation.span is not None:
            operation.span.end(operation, series.attributes)

    def _expected(self, method: str, request: Request) -> Target:
        """Find the target before anything has run, if one lookup is enough."""
        if method not in _NAMED or request.head.params.name is UNSET:
            return NO_TARGET
        target = self._feature_methods()[method].target_of(request)
        return NO_TARGET if target.binding is None else _target(method, target.binding.spec.name)

    def _target_of(self, operation: Operation) -> Target:
        """Find the registered name of the feature that an operation named."""
        request, method = operation.request, operation.method
        if method not in _TARGETED:
            return NO_TARGET
        if operation.call is not None:
            return _target(method, operation.call.spec.name)
        if method in _NAMED:
            expected = self._expected(method, request)
            return _target(method, UNKNOWN) if expected == NO_TARGET else expected
        try:
            found = self._feature_methods()["resources/read"].target_of(request).binding
        except ProtocolError:
            found = None
        return _target(method, UNKNOWN if found is None else found.spec.name)
