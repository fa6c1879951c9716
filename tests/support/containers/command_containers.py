"""Containers for the tests of the commands."""

import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import Context, ToolError, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke


@tool
async def greet(name: str) -> str:
    """Greet someone.

    Args:
        name: Who is greeted.
    """
    return f"Hello, {name}!"


@tool
async def double(number: int, note: str | None = None) -> dict[str, int]:
    """Double a number.

    Args:
        number: What is doubled.
        note: What nobody reads.
    """
    return {"doubled": 2 * number}


@tool
async def complain() -> str:
    """Answer with an error."""
    raise ToolError("This is not my day.")


@tool
async def crash() -> str:
    """Fail without an answer."""
    raise RuntimeError("the secret")


@tool
async def count(context: Context) -> str:
    """Report progress."""
    context.report_progress(1, 2, "one")
    context.report_progress(2, 2, "two")
    return "done"


@tool(timeout_seconds=20)
def read(path: str) -> str:
    """Read a pipe, which takes until someone writes to it.

    Args:
        path: Where the pipe is.
    """
    sys.stderr.write("reading\n")
    sys.stderr.flush()
    return Path(path).read_text(encoding="utf-8")


class Bystander(ILayer):
    """A layer for the tool greet only."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        return _beside(call_next) if spec.name == "greet" else call_next


def _beside(call_next: Invoke) -> Invoke:
    def invoke(call: Call) -> Awaitable[Any]:
        return call_next(call)

    return invoke


class Container(containers.DeclarativeContainer):
    """Tools that succeed and tools that fail."""

    settings = providers.Object({"server": {"name": "sample", "version": "7"}, "limits": {"timeout_seconds": 5}})
    layers = providers.List(providers.Singleton(Bystander))
    tools = providers.List(*map(providers.Object, (greet, double, complain, crash, count, read)))


class Polite(containers.DeclarativeContainer):
    """One tool set."""

    tools = providers.List(providers.Object(greet))


class Numeric(containers.DeclarativeContainer):
    """Another tool set."""

    tools = providers.List(providers.Object(double))


class Sets(containers.DeclarativeContainer):
    """Two tool sets."""

    polite = providers.Container(Polite)
    numeric = providers.Container(Numeric)


class Empty(containers.DeclarativeContainer):
    """A server without tools."""

    tools = providers.List()


def make() -> containers.Container:
    """Make a container."""
    return Container()


instance = Container()


class Eager(Container):
    """Sets a number of workers."""

    settings = providers.Object({"http": {"workers": 2}})
