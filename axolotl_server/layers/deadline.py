"""The layers around every feature: validation of the arguments, and the deadline."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import msgspec
from pydantic import ValidationError

from axolotl_core.arguments import explain
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall


class ValidationLayer(ILayer):
    """Turns the raw arguments into the feature's input model, or refuses the call."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        parse = spec.feature.argument_parser(coerce=spec.limits.coerce_arguments)
        model = spec.feature.input_model

        def validated(call: ToolCall) -> Awaitable[Any]:
            try:
                call.arguments = parse(call.raw)
            except ValidationError as error:
                raise explain(error, model) from None
            return call_next(call)

        return validated


class _Pause(msgspec.Struct):
    remaining_seconds: float
    holders: int = 0


class DeadlineLane(dict[ToolCall, float]):
    """The calls that have the same timeout, with the time at which each is due, the oldest first.

    It is a dict, so that adding and removing a call costs no function call. After adding a call, arm the lane if it is
    not armed. After removing a call that was not in the lane, forget it: it has a timer of its own, or is paused.
    """

    __slots__ = ("_pauses", "_timers", "armed", "seconds")

    def __init__(self, seconds: float, pauses: dict[ToolCall, _Pause]) -> None:
        super().__init__()
        self.seconds = seconds
        self.armed = False
        self._pauses = pauses
        self._timers: dict[ToolCall, asyncio.TimerHandle] = {}

    def arm(self) -> None:
        """Start the timer for a call that was added to an empty lane."""
        self._wake_after(self.seconds)

    def stop_at(self, call: ToolCall, due: float) -> None:
        """Stop one call at a time of its own, if that is still its deadline then."""
        self._cancel_timer(call)
        wait = max(0.0, due - monotonic())
        self._timers[call] = asyncio.get_running_loop().call_later(wait, self._stop_if_due, call, due)

    def forget(self, call: ToolCall) -> None:
        """Stop timing a call that is not in the lane."""
        self._cancel_timer(call)
        self._pauses.pop(call, None)

    def _cancel_timer(self, call: ToolCall) -> None:
        timer = self._timers.pop(call, None)
        if timer is not None:
            timer.cancel()

    def _stop_if_due(self, call: ToolCall, due: float) -> None:
        del self._timers[call]
        if call.deadline == due:
            call.stop(CancelReason.TIMEOUT)

    def _wake_after(self, seconds: float) -> None:
        self.armed = True
        asyncio.get_running_loop().call_later(seconds, self._stop_due_calls)

    def _stop_due_calls(self) -> None:
        self.armed = False
        now = monotonic()
        while self:
            call, due = next(iter(self.items()))
            if due > now:
                self._wake_after(due - now)
                return
            del self[call]
            call.stop(CancelReason.TIMEOUT)


class DeadlineTable:
    """The lanes of a server, one per timeout, and the calls whose clock is paused."""

    def __init__(self) -> None:
        self._lanes: dict[float, DeadlineLane] = {}
        self._pauses: dict[ToolCall, _Pause] = {}

    def lane(self, seconds: float) -> DeadlineLane:
        """Return the lane for a timeout."""
        if seconds not in self._lanes:
            self._lanes[seconds] = DeadlineLane(seconds, self._pauses)
        return self._lanes[seconds]

    @contextmanager
    def paused(self, call: ToolCall) -> Iterator[None]:
        """Pause a call's clock while it waits for its user, who may be asked several questions at once."""
        pause = self._pauses.get(call) or self._pause(call)
        pause.holders += 1
        try:
            yield
        finally:
            pause.holders -= 1
            if not pause.holders and self._pauses.pop(call, None) is not None:  # otherwise the call has ended
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
        # The lane is ordered by time, so a call that has only part of its timeout left gets a timer of its own.
        call.deadline = monotonic() + seconds
        self._lane_of(call).stop_at(call, call.deadline)

    def _lane_of(self, call: ToolCall) -> DeadlineLane:
        return self.lane(call.spec.limits.timeout_seconds)


class TimeoutLayer(ILayer):
    """Keeps a call in the lane of its timeout while it runs."""

    def __init__(self, deadlines: DeadlineTable) -> None:
        self._deadlines = deadlines

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        lane = self._deadlines.lane(spec.limits.timeout_seconds)
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


def _extending(timed: Invoke, lane: DeadlineLane, ceiling: float) -> Invoke:

    def timed_by_progress(call: ToolCall) -> Awaitable[Any]:
        call.extend = _Extension(lane, monotonic() + ceiling).extend
        return timed(call)

    return timed_by_progress


class _Extension:
    """Restarts the timeout of one call when it reports progress, up to a latest time."""

    __slots__ = ("_lane", "_latest", "_loop")

    def __init__(self, lane: DeadlineLane, latest: float) -> None:
        self._lane = lane
        self._latest = latest
        self._loop = asyncio.get_running_loop()

    def extend(self, call: ToolCall) -> None:
        """Give the call its whole timeout again; any thread may call this."""
        if asyncio._get_running_loop() is self._loop:
            self._extend(call)
            return
        with suppress(RuntimeError):  # the loop was closed before the thread ended
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
