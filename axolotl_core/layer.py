"""The pipeline around every feature: layers are folded once, at start, into one callable a feature."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from axolotl_core.cancellation import CancelReason
from axolotl_core.context import ToolContext
from axolotl_core.spec import FeatureSpec

__all__ = ["ILayer", "ITask", "Invoke", "ToolCall", "fold"]


class ITask(Protocol):
    """What runs a call and can be told to stop."""

    def cancel(self) -> object:
        """Ask the running code to end."""
        ...


class ToolCall(ToolContext, eq=False, kw_only=True):
    """One call, as the layers see it: the context plus what only the framework needs."""

    spec: FeatureSpec
    raw: bytes
    task: ITask
    arguments: Any = None

    def stop(self, reason: CancelReason) -> None:
        """End the call for `reason`, unless something ended it before."""
        if self.cancellation.cancel(reason):
            self.task.cancel()


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
