"""Every call has a deadline."""

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec

__all__ = ["ILane", "TimeoutLayer"]


class ILane(Protocol):
    """When each of the calls that run under one deadline is due; it stops those whose time has come."""

    seconds: float
    armed: bool

    def arm(self) -> None:
        """Start the timer; to be called when a call is put into a lane that is not armed."""
        ...

    def __setitem__(self, call: ToolCall, due: float, /) -> None: ...

    def pop(self, call: ToolCall, default: None, /) -> float | None:
        """Take a call out, whether its time has come or not."""
        ...


class TimeoutLayer(ILayer):
    """Keeps a call in the lane of its tool's deadline while it runs."""

    def __init__(self, lane_for: Callable[[float], ILane]) -> None:
        self._lane_for = lane_for

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Find the lane once."""
        lane = self._lane_for(spec.limits.timeout_seconds)
        seconds = lane.seconds

        async def timed(call: ToolCall) -> Any:
            call.deadline = lane[call] = monotonic() + seconds
            if not lane.armed:
                lane.arm()
            try:
                return await call_next(call)
            finally:
                lane.pop(call, None)
                call.deadline = None

        return timed
