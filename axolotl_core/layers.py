"""`ILayer`, `Layer`, `Invoke`, `Call`, and the functions that compose layers around a feature."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from inspect import isroutine
from typing import Any, Protocol, TypeAlias

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.calls.context import Context
from axolotl_core.features.spec import FeatureSpec

_log = logging.getLogger("axolotl")


class ITask(Protocol):
    """The task that runs a call."""

    def cancel(self) -> object:
        """Cancel the running code."""


class CallState(Enum):
    """Where a call is in its life; `axolotl_server/calls/running_call.py` says when it changes."""

    RUNNING = "running"
    STOPPED = "stopped"
    """Its code was cancelled, and has a moment to end."""
    ENDED = "ended"
    ABANDONED = "abandoned"
    """Its caller was answered although its code was still running."""
    REFUSED = "refused"
    """Its code never ran."""


class Leftover(msgspec.Struct, eq=False):
    """Code that outlives its call, such as threads; used in the loop only."""

    running: int = 0
    """How many pieces of code run: a layer may have given up waiting for a thread more than once."""
    on_end: list[Callable[[], object]] = msgspec.field(default_factory=list)
    """What to call when all of it has ended."""

    def end(self) -> None:
        """Note that a piece of code has ended; after the last one, call the callbacks."""
        self.running -= 1
        while not self.running and self.on_end:
            self.on_end.pop(0)()


class Call(Context, eq=False, kw_only=True):
    """A call as layers see it: the context, and state that only the framework needs."""

    spec: FeatureSpec
    raw: bytes
    task: ITask
    state: CallState = CallState.RUNNING
    arguments: Any = None
    leftover: Leftover | None = None
    """The code that runs on although the call has ended, for example in a thread that cannot be stopped."""
    reference: str | None = None
    """Identifies the call in the log, in its audit record and in a reply that hides an error."""
    failure: BaseException | None = None
    """The exception that ended the call."""
    extend: "Callable[[Call], object] | None" = None
    """Extends the deadline, if progress does that."""
    queued_seconds: float = 0.0
    """How long the call waited in a queue."""
    _on_abandon: tuple[Callable[[], object], ...] = ()

    @property
    def abandoned(self) -> bool:
        """Whether the caller was answered although the code was still running."""
        return self.state is CallState.ABANDONED

    def stop(self, reason: CancelReason) -> None:
        """Stop the call, unless it was stopped already."""
        if self.cancellation.cancel(reason):
            self.task.cancel()

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the caller, if it asked for that, and extend the deadline if progress does that."""
        self.counts_pieces = False
        self.caller.report_progress(progress, total, message)
        if self.extend is not None:
            self.extend(self)

    def add_piece(self, before: int) -> None:
        """Report the pieces of a stream, and extend the deadline if progress does that."""
        super().add_piece(before)
        if self.extend is not None:
            self.extend(self)

    def when_abandoned(self, callback: Callable[[], object]) -> None:
        """Register a callback for the case that the caller is answered while the code is still running.

        A layer that must do something before the reply, such as writing a record, does it here, because the code that
        it awaits may never return.
        """
        self._on_abandon = (callback, *self._on_abandon)

    def abandon(self) -> None:
        """Abandon the code, and run the callbacks of the layers, the innermost first."""
        self.state = CallState.ABANDONED
        for callback in self._on_abandon:
            try:
                callback()
            except Exception:
                _log.exception("a layer failed to handle an abandoned call")

    def when_code_ended(self, act: Callable[[], object]) -> None:
        """Call a function as soon as no code of the call runs: at once, unless some of it outlives the call.

        A layer that holds something while code runs, such as a slot, gives it back with this.
        """
        if self.leftover is None or not self.leftover.running:
            act()
        else:
            self.leftover.on_end.append(act)


Invoke: TypeAlias = Callable[[Call], Awaitable[Any]]
"""Runs a call and returns its output."""


Layer: TypeAlias = Callable[[FeatureSpec, Invoke], Invoke]
"""Wraps the function of a feature, or returns it unchanged: a plain function, or an `ILayer`."""


class ILayer(ABC):
    """A concern wrapped around tools, prompts and resources, such as a limit or a record.

    A layer that keeps nothing between calls can be a function instead.
    """

    @abstractmethod
    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Wrap `call_next`, or return it unchanged if the layer does not apply to this feature."""

    def __call__(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        return self.wrap(spec, call_next)


def type_of_layer(layer: Layer) -> Any:
    """Return what names a layer: its class, or the function itself."""
    return layer if isroutine(layer) else type(layer)


def fold(layers: Sequence[Layer], spec: FeatureSpec, innermost: Invoke) -> tuple[Invoke, tuple[Layer, ...]]:
    """Compose layers around a feature, the first outermost. Return also the layers that apply to it."""
    invoke = innermost
    applied: list[Layer] = []
    for layer in reversed(layers):
        wrapped = layer(spec, invoke)
        if wrapped is not invoke:
            applied.insert(0, layer)
        invoke = wrapped
    return invoke, tuple(applied)


def run_in_place(spec: FeatureSpec) -> Invoke:
    """Run features directly on the event loop, in the task of their call."""
    execute: Callable[[Any, Call], Awaitable[Any]] = spec.feature.execute

    def invoke(call: Call) -> Awaitable[Any]:
        return execute(call.arguments, call)

    return invoke
