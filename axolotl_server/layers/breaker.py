"""Leaving an upstream alone that fails: calls of a tool are refused for a while instead of waiting for it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded, ProtocolError, Refused, ToolError
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall
from axolotl_core.questions.question import needs_input

if TYPE_CHECKING:
    from axolotl_server.layers.circuit import CircuitBreaker

_log = logging.getLogger("axolotl")


class BreakerLayer(ILayer):
    """Gives each tool that wants one a circuit breaker.

    Exceptions count as failures, and so do deadlines that passed. A `ToolError` is an answer of the tool and does not.
    What was cancelled, refused or ended by a question says nothing about the upstream.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._circuits: dict[str, CircuitBreaker] = {}

    @property
    def circuits(self) -> "Mapping[str, CircuitBreaker]":
        """The breakers by the names of their tools."""
        return self._circuits

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put a breaker around a tool that wants one; all others are left alone."""
        rule = spec.tool.breaker if isinstance(spec, ToolSpec) else None
        if rule is None:
            return call_next
        from axolotl_server.layers.circuit import CircuitBreaker  # few tools want one

        circuit = self._circuits[spec.name] = CircuitBreaker(rule, self._clock)

        async def guarded(call: ToolCall) -> Any:
            era = circuit.enter()
            if era is None:
                raise _refusal(spec.name, circuit.wait_seconds)
            visit = _Visit(circuit, era, spec.name)
            call.when_abandoned(lambda: visit.end(_stopped(call)))
            try:
                output = await call_next(call)
            except BaseException as error:
                visit.end(_failed(error, call))
                raise
            visit.end(_stopped(call) if call.cancelled else False)
            return output

        return guarded


class _Visit:
    """One call inside of a breaker, which it leaves once: when it ends, or when its caller is answered before."""

    __slots__ = ("_circuit", "_era", "_name")

    def __init__(self, circuit: "CircuitBreaker", era: int, name: str) -> None:
        self._circuit: CircuitBreaker | None = circuit
        self._era = era
        self._name = name

    def end(self, failed: bool | None) -> None:
        circuit, self._circuit = self._circuit, None
        if circuit is None:
            return
        match circuit.leave(self._era, failed):
            case "open":
                _log.warning("%s fails too often: its calls are refused for %.3g s", self._name, circuit.wait_seconds)
            case "closed":
                _log.warning("%s works again", self._name)


def _failed(error: BaseException, call: ToolCall) -> bool | None:
    """Tell what an end says about the upstream; None where it says nothing."""
    if call.cancelled:
        return _stopped(call)
    if isinstance(error, Refused | ProtocolError) or needs_input(error):
        return None
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return None if task is not None and task.cancelling() else True
    return not isinstance(error, ToolError)


def _stopped(call: ToolCall) -> bool | None:
    return True if call.cancel_reason is CancelReason.TIMEOUT else None


def _refusal(name: str, seconds: float) -> Overloaded:
    refusal = Overloaded(f"{name} is not called for now, because what it depends on fails; try again later", seconds)
    refusal.meta = {**(refusal.meta or {}), "reason": "circuit_open"}
    return refusal
