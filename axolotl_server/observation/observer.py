"""What stands in front of the methods of an observed server: each operation is noted once, when it is answered."""

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import MethodNotFound, ProtocolError
from axolotl_core.layers import ToolCall
from axolotl_core.protocol import codes
from axolotl_server.calls.feature_method import FeatureMethod
from axolotl_server.eras.era import IEra, Method, Methods
from axolotl_server.handler import DefaultHandler
from axolotl_server.layers.call_ending import Ending
from axolotl_server.messages.connection import Connection
from axolotl_server.messages.request import Request
from axolotl_server.observation.metrics import UNKNOWN, MetricValues, Series

if TYPE_CHECKING:
    from axolotl_server.observation.otel import OperationSpan, Spans

_CALL: Final = "tools/call"
_LISTEN: Final = "subscriptions/listen"
_INTERNAL: Final = str(codes.INTERNAL_ERROR)
_IS_ERROR: Final = b'"isError":true'


class Failure(NamedTuple):
    """What an operation failed with, in the words of the conventions for MCP; empty where it did not."""

    error_type: str = ""
    code: str = ""
    """The JSON-RPC code of the answer, where that is an error."""


FINE: Final = Failure()
_TOOL_ERROR: Final = Failure("tool_error")
_CANCELLED: Final = Failure("cancelled")
_HIDDEN: Final = Failure(_INTERNAL, _INTERNAL)


class Operation:
    """A request that is being answered."""

    __slots__ = ("began", "call", "method", "outcome", "request", "span")

    def __init__(self, method: str, request: Request) -> None:
        self.began = perf_counter()
        self.method = method
        """As it was registered; `_unknown` for any other."""
        self.request = request
        self.call: ToolCall | None = None
        """What was run for it, once that is over."""
        self.outcome = ""
        self.span: OperationSpan | None = None


class _Told(msgspec.Struct, rename="camel"):
    is_error: bool = False


_read_told: Final = msgspec.json.Decoder(_Told).decode


def failure_of_error(error: BaseException, request: Request) -> Failure:
    """Tell how the handler will answer what a method raised."""
    if isinstance(error, ProtocolError):
        code = str(request.era.code_of(error))
        return Failure(code, code)
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return _CANCELLED
    return _HIDDEN


def failure_of_result(method: str, result: bytes | None) -> Failure:
    """Look whether a result is one that tells of an error, or none because its caller is gone."""
    if result is None:
        return FINE if method == _LISTEN else _CANCELLED
    # The first look is quick, and right unless the output of a tool has a member of that name.
    if method == _CALL and _IS_ERROR in result and _read_told(result).is_error:
        return _TOOL_ERROR
    return FINE


def failure_of_stop(method: str, call: ToolCall) -> Failure:
    """Tell how a call is answered whose code goes on for nobody."""
    if call.cancel_reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
        return _CANCELLED
    return _TOOL_ERROR if method == _CALL else _HIDDEN


class ObservedHandler(DefaultHandler):
    """Measures connections from their beginning to their end."""

    def __init__(self, *parts: Any, numbers: MetricValues) -> None:
        super().__init__(*parts)
        self._numbers = numbers
        self._began: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()

    def connect(self, connection: Connection) -> None:
        """Begin a connection."""
        self._began[connection] = perf_counter()
        super().connect(connection)

    def disconnect(self, connection: Connection, reason: CancelReason = CancelReason.DISCONNECT) -> None:
        """End a connection; one without a handshake was no session."""
        began, era = self._began.pop(connection, None), connection.era
        if began is not None and era is not None:
            self._numbers.sessions.series((era.revision.name,)).record(perf_counter() - began)
        super().disconnect(connection, reason)


Target: TypeAlias = tuple[str, str, str, str]
"""The GenAI operation, the tool, the prompt, and the resource or its template; empty where there is none."""

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
    """Finds the registered name behind a request."""

    def __init__(self, feature_methods: Mapping[str, FeatureMethod]) -> None:
        self._feature_methods = feature_methods

    def expected(self, method: str, request: Request) -> Target:
        """Find the target before anything has run, where one lookup is enough for that."""
        if method not in ("tools/call", "prompts/get") or request.head.params.name is UNSET:
            return NO_TARGET
        target = request.target = request.target or self._feature_methods[method].locate(request)
        return NO_TARGET if target.binding is None else _MAKERS[method](target.binding.spec.name)

    def of(self, operation: Operation) -> Target:
        """Give the target of an operation that is over."""
        make = _MAKERS.get(operation.method)
        if make is None:
            return NO_TARGET
        return make(self._found(operation) if operation.call is None else operation.call.spec.name)

    def _found(self, operation: Operation) -> str:
        """Look for what a request names of which nothing was run."""
        request, method = operation.request, operation.method
        if method in ("tools/call", "prompts/get"):
            return "".join(self.expected(method, request)[1:]) or UNKNOWN
        try:
            target = request.target or self._feature_methods["resources/read"].locate(request)
        except ProtocolError:
            return UNKNOWN
        return UNKNOWN if target.binding is None else target.binding.spec.name


_Key: TypeAlias = tuple[str, str | None, Failure, IEra, bool]

_MOST_REMEMBERED: Final = 10_000


class _ObservedMethods(dict[str, Method]):
    """A table that has a method for every name, so that requests for what there is not are noted too."""

    def __init__(self, methods: Methods, unknown: Method) -> None:
        super().__init__(methods)
        self._unknown = unknown

    def get(self, name: str, default: object = None) -> Method:
        return super().get(name) or self._unknown


class OperationObserver:
    """Measures operations, and makes spans of them where there is a tracer."""

    def __init__(self, numbers: MetricValues, spans: "Spans | None" = None) -> None:
        self._numbers = numbers
        self._spans = spans
        self._targets: Targets | None = None
        self._running: dict[Request, Operation] = {}
        """What is not answered yet; who takes an operation out of here notes it."""
        self._series: dict[_Key, Series] = {}
        """What counts the operations on what is registered, so that labels are put together once."""

    def observe(self, methods: Methods, feature_methods: Mapping[str, FeatureMethod]) -> Methods:
        """Stand in front of methods; some of them name a feature."""
        self._targets = Targets(feature_methods)
        around = self._measured if self._spans is None else self._traced
        observed = {name: around(name, method) for name, method in methods.items()}
        return _ObservedMethods(observed, around(UNKNOWN, _not_found))

    def observe_admission(self, era: IEra) -> None:
        """Note the requests, too, that an era does not let through to a method."""
        admit = era.admit

        def admitted(request: Request) -> None:
            try:
                admit(request)
            except ProtocolError as error:
                method = request.head.method
                operation = self._begin(method if method in era.methods else UNKNOWN, request)
                if self._spans is not None:
                    operation.span = self._spans.begin(operation, NO_TARGET)
                self._end(operation, failure_of_error(error, request))
                raise

        era.admit = admitted  # type: ignore[method-assign]  # once, before there is a request

    def ended(self, call: ToolCall, ending: Ending) -> None:
        """Take note of the end of a call; the operation of one that is answered without its code ends with it."""
        spec, numbers = call.spec, self._numbers
        numbers.calls.add((spec.kind, spec.name, ending.outcome))
        if ending.outcome == "overloaded":
            numbers.sheds.add(("circuit" if ending.reason == "circuit_open" else "concurrency",))
        if call.queued_seconds:
            numbers.queues.series((spec.kind, spec.name)).record(call.queued_seconds)
        request = call.caller
        operation = self._running.get(request) if isinstance(request, Request) else None
        if operation is None:  # it runs as a task, of which the request was answered long ago
            return
        operation.call, operation.outcome = call, ending.outcome
        if call.abandoned:
            self._end(operation, failure_of_stop(operation.method, call))

    def _measured(self, name: str, method: Method) -> Method:
        async def measured(request: Request) -> bytes | None:
            operation = self._begin(name, request)
            try:
                result = await method(request)
            except BaseException as error:
                self._end(operation, failure_of_error(error, request))
                raise
            self._end(operation, failure_of_result(name, result))
            return result

        return measured

    def _traced(self, name: str, method: Method) -> Method:
        spans, targets = self._spans, self._targets
        assert spans is not None
        assert targets is not None

        async def traced(request: Request) -> bytes | None:
            operation = self._begin(name, request)
            span = operation.span = spans.begin(operation, targets.expected(name, request))
            with span:
                try:
                    result = await method(request)
                except BaseException as error:
                    self._end(operation, failure_of_error(error, request))
                    raise
                self._end(operation, failure_of_result(name, result))
                return result

        return traced

    def _begin(self, method: str, request: Request) -> Operation:
        operation = self._running[request] = Operation(method, request)
        return operation

    def _end(self, operation: Operation, failure: Failure) -> None:
        """Note an operation, unless that was done when its caller was answered without its code."""
        seconds = perf_counter() - operation.began
        request, call = operation.request, operation.call
        if self._running.pop(request, None) is None:
            return
        name = None if call is None else call.spec.name
        key = (operation.method, name, failure, request.era, request.exchange.headers is None)
        series = self._series.get(key) or self._find_series(key, operation, failure)
        series.record(seconds)
        if operation.span is not None:
            operation.span.end(operation, series.attributes)

    def _find_series(self, key: _Key, operation: Operation, failure: Failure) -> Series:
        request = operation.request
        assert self._targets is not None
        target = self._targets.of(operation)
        transport = "pipe" if request.exchange.headers is None else "tcp"
        labels = (operation.method, *target, *failure, request.era.revision.name, transport)
        series = self._numbers.operations.series(labels)
        known = operation.call is not None or target is NO_TARGET
        if known and len(self._series) < _MOST_REMEMBERED:
            self._series[key] = series
        return series


async def _not_found(request: Request) -> bytes | None:
    raise MethodNotFound(f"Method not found: {request.head.method}")
