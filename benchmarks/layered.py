"""Variants of one tool, each with a different policy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ITool, Principal, ToolAnnotations
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from benchmarks.servers.functions import Sum

CALLER = Principal("ada", "acme", frozenset({"payments"}), frozenset({"clerk"}))
TOOLSET = "desk"


class KeyedPair(BaseModel):
    """Two integers, and a key that makes calls distinct."""

    a: int
    b: int
    key: str = ""


class KeyedAdd(ITool[KeyedPair, Sum]):
    """Adds two integers."""

    name = "add"
    description = "Add two integers."
    annotations = ToolAnnotations(read_only=True)
    suspends = False

    async def execute(self, arguments: KeyedPair, context: Context) -> Sum:
        return Sum(result=arguments.a + arguments.b)


class ReportingAdd(KeyedAdd):
    """Adds two integers and reports progress once."""

    async def execute(self, arguments: KeyedPair, context: Context) -> Sum:
        context.report_progress(1, 1)
        return Sum(result=arguments.a + arguments.b)


class PassingLayer(ILayer):
    """The smallest possible layer, which only passes calls on."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:

        async def passed(call: Call) -> Any:
            return await call_next(call)

        return passed


def _nothing(directory: Path) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Variant:
    """A tool and the settings around it."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the tool."""
    settings: Callable[[Path], Mapping[str, Any]] = _nothing
    """Settings for a directory, which holds files and the socket of Redis."""
    kind: type[KeyedAdd] = KeyedAdd
    layers: Sequence[ILayer] = ()
    calls: int = 50
    """The number of calls per block."""
    one_key: bool = False
    """Whether all calls have the same arguments."""
    needs_redis: bool = False
    at_most: float | None = None
    """The target: the highest allowed ratio to a plain call."""

    @property
    def has_processes(self) -> bool:
        """Whether calls use other processes."""
        return self.needs_redis or self.attributes.get("execution") == "process"

    def container(self) -> containers.Container:
        """Return a container with the tool in a tool set."""
        tool = self.kind()
        for name, value in self.attributes.items():
            setattr(tool, name, value)
        container = containers.DynamicContainer()
        container.tools = providers.Aggregate({TOOLSET: providers.Object([tool])})
        container.layers = providers.Object(list(self.layers))
        return container
