"""The same tool with one policy after the other around it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import FeatureSpec, ILayer, Invoke, ITool, Principal, ToolAnnotations, ToolCall, ToolContext
from benchmarks.servers.functions import Sum

CALLER = Principal("ada", "acme", frozenset({"payments"}), frozenset({"clerk"}))
TOOLSET = "desk"


class KeyedPair(BaseModel):
    """Hold two integers, and what makes a call another one."""

    a: int
    b: int
    key: str = ""


class KeyedAdd(ITool[KeyedPair, Sum]):
    """Add two integers."""

    name = "add"
    description = "Add two integers."
    annotations = ToolAnnotations(read_only=True)
    suspends = False

    async def execute(self, arguments: KeyedPair, context: ToolContext) -> Sum:
        """Return the sum."""
        return Sum(result=arguments.a + arguments.b)


class ReportingAdd(KeyedAdd):
    """Add two integers, and tell of progress once."""

    async def execute(self, arguments: KeyedPair, context: ToolContext) -> Sum:
        """Return the sum."""
        context.report_progress(1, 1)
        return Sum(result=arguments.a + arguments.b)


class PassingLayer(ILayer):
    """Pass calls on, as the smallest layer that somebody could write."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put a coroutine around the tool."""

        async def passed(call: ToolCall) -> Any:
            return await call_next(call)

        return passed


def _nothing(directory: Path) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Variant:
    """Say what is around the tool."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What the tool says of itself."""
    settings: Callable[[Path], Mapping[str, Any]] = _nothing
    """What an operator says; files go to the directory, where Redis listens too."""
    kind: type[KeyedAdd] = KeyedAdd
    layers: Sequence[ILayer] = ()
    calls: int = 50
    """How many are made at a time."""
    one_key: bool = False
    """Whether all calls have the same arguments."""
    needs_redis: bool = False
    at_most: float | None = None
    """How much dearer than a plain call it may be."""

    @property
    def has_processes(self) -> bool:
        """Whether other processes work for a call."""
        return self.needs_redis or self.attributes.get("execution") == "process"

    def container(self) -> containers.Container:
        """Put the tool into a tool set."""
        tool = self.kind()
        for name, value in self.attributes.items():
            setattr(tool, name, value)
        container = containers.DynamicContainer()
        container.tools = providers.Aggregate({TOOLSET: providers.Object([tool])})
        container.layers = providers.Object(list(self.layers))
        return container
