"""Circuit breakers around tools: calls are refused for a while when the upstream of a tool fails."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded, ProtocolError, Refused, ToolError
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.questions.question import needs_input
from axolotl_core.registry import AnyTool

if TYPE_CHECKING:
    from axolotl_server.layers.circuit import CircuitBreaker

_log = logging.getLogger("axolotl")


class BreakerLayer(ILayer):
    """Puts a circuit breaker around each tool that asks for one.

    Exceptions and timeouts count as failures. A `ToolError` does not, because it is an answer of the tool. Calls that
    were cancelled, refused or ended by a question do not count, because they say nothing about the upstream.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._circuits: dict[str, CircuitBreaker] = {}
        self._tools: dict[str, AnyTool] = {}
        """The tools of the circuits: one that also runs as tasks is wrapped twice, and has one circuit."""

    @property
    def circuits(self) -> "Mapping[str, CircuitBreaker]":
        """The circuit breakers, by the names of their tools."""
        return self._circuits

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if not isinstance(spec, ToolSpec) or (rule := spec.tool.breaker) is None:
            return call_next
        from axolotl_server.layers.circuit import CircuitBreaker  # few tools have one

        if self._tools.get(spec.name) is not spec.tool:
            self._tools[spec.name], self._circuits[spec.name] = spec.tool, CircuitBreaker(rule, self._clock)
        circuit = self._circuits[spec.name]

        async def guarded(call: Call) -> Any:
            epoch = circuit.enter()
            if epoch is None:
                raise _refusal(spec.name, circuit.wait_seconds)
            open_call = _OpenCall(circuit, epoch, spec.name)
            call.when_abandoned(lambda: open_call.end(_stopped(call)))
            try:
                output = await call_next(call)
            except BaseException as error:
                open_call.end(_failed(error, call))
                raise
            open_call.end(_stopped(call) if call.cancelled else False)
            return output

        return guarded


class _OpenCall:
    """A call inside of a circuit breaker; it leaves once, when it ends or is abandoned."""

    __slots__ = ("_circuit", "_epoch", "_name")

    def __init__(self, circuit: "CircuitBreaker", epoch: int, name: str) -> None:
        self._circuit: CircuitBreaker | None = circuit
        self._epoch = epoch
        self._name = name

    def end(self, failed: bool | None) -> None:
        circuit, self._circuit = self._circuit, None
        if circuit is None:
            return
        match circuit.leave(self._epoch, failed):
            case "open":
                _log.warning("%s failed too often: its calls are refused for %.3g s", self._name, circuit.wait_seconds)
            case "closed":
                _log.warning("%s has recovered", self._name)


def _failed(error: BaseException, call: Call) -> bool | None:
    """Tell whether a call counts as a failure; None if it does not count."""
    if call.cancelled:
        return _stopped(call)
    if isinstance(error, Refused | ProtocolError) or needs_input(error):
        return None
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return None if task is not None and task.cancelling() else True
    return not isinstance(error, ToolError)


def _stopped(call: Call) -> bool | None:
    return True if call.cancel_reason is CancelReason.TIMEOUT else None


def _refusal(name: str, seconds: float) -> Overloaded:
    refusal = Overloaded(f"{name} is not available, because its upstream fails; try again later", seconds)
    refusal.meta = {**(refusal.meta or {}), **own_meta(reason="circuit_open")}
    return refusal
