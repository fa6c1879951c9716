"""Every call has a deadline."""

from collections.abc import Callable
from typing import Any, Protocol

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import ToolSpec

__all__ = ["ILane", "TimeoutLayer"]


class ILane(Protocol):
    """Stops calls that stay in it for too long."""

    def add(self, call: ToolCall) -> float:
        """Start the clock of a call and answer when it runs out."""
        ...

    def discard(self, call: ToolCall) -> None:
        """Stop the clock of a call."""
        ...


class TimeoutLayer(ILayer):
    """Keeps a call in the lane of its tool's deadline while it runs."""

    def __init__(self, lane_for: Callable[[float], ILane]) -> None:
        self._lane_for = lane_for

    def wrap(self, spec: ToolSpec, call_next: Invoke) -> Invoke:
        """Find the lane once."""
        lane = self._lane_for(spec.limits.timeout_seconds)
        add, discard = lane.add, lane.discard

        async def timed(call: ToolCall) -> Any:
            call.deadline = add(call)
            try:
                return await call_next(call)
            finally:
                discard(call)

        return timed
