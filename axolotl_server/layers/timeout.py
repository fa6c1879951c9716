"""Every call has a deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
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

    def stop_at(self, call: ToolCall, due: float) -> None:
        """Stop one call at a time of its own, if that is still its deadline then."""
        ...

    def __setitem__(self, call: ToolCall, due: float, /) -> None: ...

    def pop(self, call: ToolCall, default: None, /) -> float | None:
        """Take a call out, whether its time has come or not; answers None if it was not in it."""
        ...

    def forget(self, call: ToolCall) -> None:
        """Time a call no more that is not in the lane."""
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
                if lane.pop(call, None) is None:
                    lane.forget(call)
                call.deadline = None

        ceiling = spec.limits.max_timeout_seconds
        return timed if ceiling is None else _extending(timed, lane, ceiling)


def _extending(timed: Invoke, lane: ILane, ceiling: float) -> Invoke:
    """Let progress start the deadline anew, until the ceiling is reached."""

    def timed_by_progress(call: ToolCall) -> Awaitable[Any]:
        call.extend = _Extension(lane, monotonic() + ceiling).extend
        return timed(call)

    return timed_by_progress


class _Extension:
    """Moves the deadline of one call, to later and never beyond its ceiling."""

    __slots__ = ("_lane", "_latest", "_loop")

    def __init__(self, lane: ILane, latest: float) -> None:
        self._lane = lane
        self._latest = latest
        self._loop = asyncio.get_running_loop()

    def extend(self, call: ToolCall) -> None:
        """Give the call its whole time again, from whatever thread it says that it goes on."""
        if asyncio._get_running_loop() is self._loop:
            self._extend(call)
            return
        with suppress(RuntimeError):  # the server has ended before the thread
            self._loop.call_soon_threadsafe(self._extend, call)

    def _extend(self, call: ToolCall) -> None:
        lane, latest = self._lane, self._latest
        due = min(monotonic() + lane.seconds, latest)
        if call.deadline is None or call.cancelled or due <= call.deadline:
            return
        if lane.pop(call, None) is None:
            lane.forget(call)
        call.deadline = due
        if due == latest:
            lane.stop_at(call, latest)
            return
        lane[call] = due
        if not lane.armed:
            lane.arm()
