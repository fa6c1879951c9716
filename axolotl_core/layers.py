"""Tools that run on the event loop, in the task of their call."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.calls.context import ToolContext
from axolotl_core.features.spec import FeatureSpec

_log = logging.getLogger("axolotl")


class ITask(Protocol):
    """What runs a call and can be told to stop."""

    def cancel(self) -> object:
        """Ask the running code to end."""
        ...


class IOverseer(Protocol):
    """What looks after calls that were told to stop."""

    def stopped(self, call: "ToolCall") -> None:
        """See to it that the caller is answered in time, whether the code ends or not."""
        ...


class ToolCall(ToolContext, eq=False, kw_only=True):
    """One call, as the layers see it: the context plus what only the framework needs."""

    spec: FeatureSpec
    raw: bytes
    task: ITask
    overseer: IOverseer | None = None
    arguments: Any = None
    lingers: "Callable[[Callable[[], object]], object] | None" = None
    """Set by what runs the code where the code goes on after the call has ended, as in a thread that cannot be
    stopped: has a callback called when the code has ended too. Whoever counts running code waits for that."""
    reference: str | None = None
    """What the log, the record and an answer that hides an error call this call by, where there is a record."""
    failure: BaseException | None = None
    """What the call ended with instead of an output."""
    abandoned: bool = False
    """Whether the caller was answered although the code has not ended."""
    extend: "Callable[[ToolCall], object] | None" = None
    """Set by the deadline where progress moves it."""
    queued_seconds: float = 0.0
    """How long the call waited for a place."""
    _on_abandon: "list[Callable[[], object]] | None" = None

    def stop(self, reason: CancelReason) -> None:
        """End the call for `reason`, unless something ended it before."""
        if self.cancellation.cancel(reason):
            self.task.cancel()
            if self.overseer is not None:
                self.overseer.stopped(self)

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell a caller that asked for it how far the work is, and move the deadline where progress does."""
        self.caller.report_progress(progress, total, message)
        if self.extend is not None:
            self.extend(self)

    def when_abandoned(self, callback: Callable[[], object]) -> None:
        """Have something done when the caller is answered without waiting for the code.

        A layer whose work must be done before the answer, such as a record, does it here: the code that it awaits may
        never return.
        """
        self._on_abandon = [*(self._on_abandon or ()), callback]

    def abandon(self) -> None:
        """Leave the code to itself; what the layers have to do before the answer is done now, the innermost first."""
        self.abandoned = True
        for callback in reversed(self._on_abandon or ()):
            try:
                callback()
            except Exception:
                _log.exception("what a layer does when a call is abandoned failed")


Invoke: TypeAlias = Callable[[ToolCall], Awaitable[Any]]
"""Runs a call and gives the output."""


class ILayer(ABC):
    """A concern wrapped around tools, prompts and resources, such as a limit or a record."""

    @abstractmethod
    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put this concern around `call_next`; a layer that does not concern it returns `call_next` itself."""


def fold(layers: Sequence[ILayer], spec: FeatureSpec, innermost: Invoke) -> tuple[Invoke, tuple[ILayer, ...]]:
    """Compose the layers around a feature, the first outermost; answers also which of them concern it."""
    invoke = innermost
    concerned: list[ILayer] = []
    for layer in reversed(layers):
        wrapped = layer.wrap(spec, invoke)
        if wrapped is not invoke:
            concerned.insert(0, layer)
        invoke = wrapped
    return invoke, tuple(concerned)


def run_in_place(spec: FeatureSpec) -> Invoke:
    """Await the tool in place."""
    execute = spec.feature.execute

    def invoke(call: ToolCall) -> Awaitable[Any]:
        return execute(call.arguments, call)

    return invoke
