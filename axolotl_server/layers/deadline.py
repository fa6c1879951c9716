"""The layers around every feature: validation of the arguments, and the deadline."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

import msgspec
from pydantic import ValidationError

from axolotl_core.arguments import explain
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, Invoke


def validation(spec: FeatureSpec, call_next: Invoke) -> Invoke:
    """Turn the raw arguments into the feature's input model, or refuse the call."""
    parse = spec.feature.argument_parser(coerce=spec.limits.coerce_arguments)
    model = spec.feature.input_model

    def validated(call: Call) -> Awaitable[Any]:
        try:
            call.arguments = parse(call.raw)
        except ValidationError as error:
            raise explain(error, model) from None
        return call_next(call)

    return validated


class _Pause(msgspec.Struct):
    remaining_seconds: float
    holders: int = 0


class DeadlineTable:
    """The deadlines of running calls. One timer serves all: it waits until the first of them would have been due."""

    def __init__(self) -> None:
        self._timed: set[Call] = set()
        """The calls whose clock runs."""
        self._pauses: dict[Call, _Pause] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = inf

    def start(self, call: Call, seconds: float) -> None:
        """Stop a call after some time, unless its deadline is moved or it ends."""
        call.deadline = due = monotonic() + seconds
        self._timed.add(call)
        if due < self._wakes_at:
            self._wake_after(seconds)

    def end(self, call: Call) -> None:
        """Remove the deadline of a call."""
        call.deadline = None
        self._timed.discard(call)
        if self._pauses:
            self._pauses.pop(call, None)

    def move(self, call: Call, successor: Call) -> None:
        """Let another call have the rest of the time of a call."""
        seconds = call.remaining_seconds
        self.end(call)
        if seconds is not None:
            self.start(successor, seconds)

    def is_paused(self, call: Call) -> bool:
        """Tell whether the clock of a call is paused, because the call waits for its user."""
        return call in self._pauses

    @contextmanager
    def paused(self, call: Call) -> Iterator[None]:
        """Pause a call's clock while it waits for its user, who may be asked several questions at once."""
        pause = self._pauses.get(call)
        if pause is None:
            remaining = call.remaining_seconds
            self.end(call)
            pause = self._pauses[call] = _Pause(call.spec.limits.timeout_seconds if remaining is None else remaining)
        pause.holders += 1
        try:
            yield
        finally:
            pause.holders -= 1
            if not pause.holders and self._pauses.pop(call, None) is not None:  # otherwise the call has ended
                self.start(call, pause.remaining_seconds)

    def _wake_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = monotonic() + seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._stop_overdue)

    def _stop_overdue(self) -> None:
        """Stop the calls that are due, and wait for the next one."""
        self._timer, self._wakes_at = None, inf
        try:
            for call in tuple(self._timed):
                if call.remaining_seconds == 0.0:
                    self._timed.discard(call)
                    call.stop(CancelReason.TIMEOUT)
        finally:
            if self._timed:
                self._wake_after(min(call.remaining_seconds or 0.0 for call in self._timed))

    def timeout(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Give calls of a feature their deadline, which progress moves if the feature has a maximum."""
        seconds, ceiling = spec.limits.timeout_seconds, spec.limits.max_timeout_seconds

        async def timed(call: Call) -> Any:
            self.start(call, seconds)
            try:
                return await call_next(call)
            finally:
                self.end(call)

        def timed_by_progress(call: Call) -> Awaitable[Any]:
            latest = monotonic() + (ceiling or 0.0)

            def extend(call: Call) -> None:
                """Give the call its whole timeout again; any thread may call this."""
                due = min(monotonic() + seconds, latest)
                if call.deadline is not None and not call.cancelled and due > call.deadline:
                    call.deadline = due

            call.extend = extend
            return timed(call)

        return timed if ceiling is None else timed_by_progress
