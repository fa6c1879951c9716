"""Circuit breakers around tools: calls are refused for a while when the upstream of a tool fails."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded, ProtocolError, Refused, ToolError
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.tool_rules import Breaker, BreakerState
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.questions.question import needs_input
from axolotl_core.registry import AnyTool

_SLICES: Final = 10
"""The number of parts of the window; the oldest part is dropped as a whole."""


class _Window:
    """The number of failed and of other calls in the recent past."""

    def __init__(self, seconds: float) -> None:
        self._slice_seconds = seconds / _SLICES
        self._slices: dict[int, tuple[int, int]] = {}

    def add(self, failed: bool, now: float) -> None:
        number = int(now // self._slice_seconds)
        known = self._slices.get(number)
        if known is None:
            known = 0, 0
            for old in [old for old in self._slices if old <= number - _SLICES]:
                del self._slices[old]
        failures, others = known
        self._slices[number] = (failures + failed, others + (not failed))

    @property
    def counts(self) -> tuple[int, int]:
        failures = sum(failed for failed, _ in self._slices.values())
        return failures, failures + sum(others for _, others in self._slices.values())


class CircuitBreaker:
    """Closed until too many calls fail, then open for a while, then half open: one call may run to test the upstream.

    A call counts only in the epoch in which it began: one that began before the breaker opened says nothing about the
    upstream now.
    """

    def __init__(self, rule: Breaker, clock: Callable[[], float] = monotonic) -> None:
        self._rule = rule
        self._clock = clock
        self._window = _Window(rule.window_seconds)
        self._open_until: float | None = None
        self._probing = False
        self._epoch = 0
        self.opened = 0
        """How often it has opened."""

    @property
    def state(self) -> BreakerState:
        """Whether calls run, are refused, or one may run as a test."""
        if self._open_until is None:
            return "closed"
        return "open" if self._clock() < self._open_until else "half_open"

    @property
    def wait_seconds(self) -> float:
        """How long the caller of a refused call should wait."""
        left = 0.0 if self._open_until is None else self._open_until - self._clock()
        # It is not known how long the test takes.
        return left if left > 0 else min(1.0, self._rule.open_seconds)

    def enter(self) -> int | None:
        """Admit a call and return the epoch to `leave` with, or None if it is refused."""
        state = self.state
        if state == "open" or (state == "half_open" and self._probing):
            return None
        self._probing = state == "half_open"
        return self._epoch

    def leave(self, epoch: int, failed: bool | None) -> BreakerState | None:
        """Count a call, unless `failed` is None, and return the new state if it has changed."""
        if epoch != self._epoch:
            return None
        if self._open_until is not None:
            self._probing = False
            return None if failed is None else self._open() if failed else self._close()
        return None if failed is None else self._count(failed)

    def _count(self, failed: bool) -> BreakerState | None:
        self._window.add(failed, self._clock())
        if not failed:
            return None
        failures, calls = self._window.counts
        too_many = failures >= self._rule.failures and failures >= self._rule.share * calls
        return self._open() if too_many else None

    def _open(self) -> BreakerState:
        self._epoch += 1
        self.opened += 1
        self._open_until = self._clock() + self._rule.open_seconds
        return "open"

    def _close(self) -> BreakerState:
        self._epoch += 1
        self._open_until = None
        self._window = _Window(self._rule.window_seconds)
        return "closed"


_log = logging.getLogger("axolotl")


class BreakerLayer(ILayer):
    """Puts a circuit breaker around each tool that asks for one.

    Exceptions and timeouts count as failures. A `ToolError` does not, because it is an answer of the tool. Calls that
    were cancelled, refused or ended by a question do not count, because they say nothing about the upstream.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.circuits: dict[str, CircuitBreaker] = {}
        """The circuit breakers, by the names of their tools."""
        self._tools: dict[str, AnyTool] = {}
        """The tools of the circuits: one that also runs as tasks is wrapped twice, and has one circuit."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if not isinstance(spec, ToolSpec) or (rule := spec.tool.breaker) is None:
            return call_next

        if self._tools.get(spec.name) is not spec.tool:
            self._tools[spec.name], self.circuits[spec.name] = spec.tool, CircuitBreaker(rule, self._clock)
        circuit = self.circuits[spec.name]

        async def guarded(call: Call) -> Any:
            epoch = circuit.enter()
            if epoch is None:
                text = f"{spec.name} is not available, because its upstream fails; try again later"
                refusal = Overloaded(text, circuit.wait_seconds)
                refusal.meta = {**(refusal.meta or {}), **own_meta(reason="circuit_open")}
                raise refusal
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

    def __init__(self, circuit: CircuitBreaker, epoch: int, name: str) -> None:
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
