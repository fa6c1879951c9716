"""What stands in front of the methods of an observed server: each operation is noted once, when it is answered."""

from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias

from axolotl_core.errors import MethodNotFound, ProtocolError
from axolotl_core.layer import ToolCall
from axolotl_server.eras.base import IEra, Method, Methods
from axolotl_server.layers.audit_outcomes import Ending
from axolotl_server.observation.metrics import UNKNOWN
from axolotl_server.observation.numbers import Numbers, Series
from axolotl_server.observation.operations import (
    Failure,
    Operation,
    failure_of_error,
    failure_of_result,
    failure_of_stop,
)
from axolotl_server.observation.targets import NO_TARGET, IFeatures, Targets
from axolotl_server.request import Request

if TYPE_CHECKING:
    from axolotl_server.observation.spans import Spans

__all__ = ["Observer"]

_Key: TypeAlias = tuple[str, str | None, Failure, IEra, bool]

_MOST_REMEMBERED: Final = 10_000


class _ObservedMethods(dict[str, Method]):
    """A table that has a method for every name, so that requests for what there is not are noted too."""

    def __init__(self, methods: Methods, unknown: Method) -> None:
        super().__init__(methods)
        self._unknown = unknown

    def get(self, name: str, default: object = None) -> Method:
        return super().get(name) or self._unknown


class Observer:
    """Measures operations, and makes spans of them where there is a tracer."""

    def __init__(self, numbers: Numbers, spans: "Spans | None" = None) -> None:
        self._numbers = numbers
        self._spans = spans
        self._targets: Targets | None = None
        self._running: dict[Request, Operation] = {}
        """What is not answered yet; who takes an operation out of here notes it."""
        self._series: dict[_Key, Series] = {}
        """What counts the operations on what is registered, so that labels are put together once."""

    def observe(self, methods: Methods, features: IFeatures) -> Methods:
        """Stand in front of methods that are about these features."""
        self._targets = Targets(features)
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
