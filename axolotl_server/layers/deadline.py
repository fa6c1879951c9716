"""Arguments are validated once, from bytes, before anything waits."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from axolotl_core.arguments import explain
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall

ItemT = TypeVar("ItemT")


@dataclass(slots=True)
class _Pause:
    remaining_seconds: float
    holders: int = 0


class DeadlineLane(dict[ItemT, float]):
    """When each item is due, oldest first.

    It is a dict, so that putting an item in and taking it out costs no call: who adds one looks at `armed`, and who
    takes out one that was not in it has it forgotten, because it is timed on its own, or its clock stands still.
    """

    __slots__ = ("_on_due", "_pauses", "_timers", "armed", "seconds")

    def __init__(
        self, seconds: float, on_due: Callable[[ItemT], object], pauses: dict[ItemT, _Pause] | None = None
    ) -> None:
        super().__init__()
        self.seconds = seconds
        self.armed = False
        self._on_due = on_due
        self._pauses = {} if pauses is None else pauses
        self._timers: dict[ItemT, asyncio.TimerHandle] = {}

    def arm(self) -> None:
        """Start the timer for an item that was put into an empty lane."""
        self._wake_after(self.seconds)

    def stop_at(self, item: ItemT, due: float) -> None:
        """Let one item be due at a time of its own, if that is still its deadline then."""
        self._cancel_timer(item)
        wait = max(0.0, due - time.monotonic())
        self._timers[item] = asyncio.get_running_loop().call_later(wait, self._stop_if_due, item, due)

    def forget(self, item: ItemT) -> None:
        """Time an item no more that is not in the lane."""
        self._cancel_timer(item)
        self._pauses.pop(item, None)

    def _cancel_timer(self, item: ItemT) -> None:
        timer = self._timers.pop(item, None)
        if timer is not None:
            timer.cancel()

    def _stop_if_due(self, item: ItemT, due: float) -> None:
        del self._timers[item]
        if getattr(item, "deadline", None) == due:
            self._on_due(item)

    def _wake_after(self, seconds: float) -> None:
        self.armed = True
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self.armed = False
        now = time.monotonic()
        while self:
            item, due = next(iter(self.items()))
            if due > now:
                self._wake_after(due - now)
                return
            del self[item]
            self._on_due(item)


class DeadlineTable:
    """The lanes of a server, one a duration, and the calls whose clock stands still."""

    def __init__(self) -> None:
        self._lanes: dict[float, DeadlineLane[ToolCall]] = {}
        self._pauses: dict[ToolCall, _Pause] = {}

    def lane(self, seconds: float) -> DeadlineLane[ToolCall]:
        """Give the lane whose calls are stopped with the reason `timeout` after that many seconds."""
        if seconds not in self._lanes:
            self._lanes[seconds] = DeadlineLane(seconds, _expire, self._pauses)
        return self._lanes[seconds]

    @contextmanager
    def paused(self, call: ToolCall) -> Iterator[None]:
        """Let a call's clock stand still while it waits for its user, however many questions it waits for."""
        pause = self._pauses.get(call) or self._pause(call)
        pause.holders += 1
        try:
            yield
        finally:
            pause.holders -= 1
            if not pause.holders and self._pauses.pop(call, None) is not None:  # else the call has ended meanwhile
                self._resume(call, pause.remaining_seconds)

    def _pause(self, call: ToolCall) -> _Pause:
        remaining = call.remaining_seconds
        lane = self._lane_of(call)
        if lane.pop(call, None) is None:
            lane.forget(call)
        call.deadline = None
        pause = self._pauses[call] = _Pause(call.spec.limits.timeout_seconds if remaining is None else remaining)
        return pause

    def _resume(self, call: ToolCall, seconds: float) -> None:
        """Time the rest of a call on its own: its lane holds only calls that have the whole time before them."""
        call.deadline = time.monotonic() + seconds
        self._lane_of(call).stop_at(call, call.deadline)

    def _lane_of(self, call: ToolCall) -> DeadlineLane[ToolCall]:
        return self.lane(call.spec.limits.timeout_seconds)


def _expire(call: ToolCall) -> None:
    call.stop(CancelReason.TIMEOUT)


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


class ValidationLayer(ILayer):
    """Turns the raw arguments into the tool's input model, or refuses the call."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Compile the tool's parser."""
        parse = spec.feature.argument_parser(coerce=spec.limits.coerce_arguments)

        model = spec.feature.input_model

        def validated(call: ToolCall) -> Awaitable[Any]:
            try:
                call.arguments = parse(call.raw)
            except ValidationError as error:
                raise explain(error, model) from None
            return call_next(call)

        return validated
