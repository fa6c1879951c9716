"""`@tool`: a function or a method as a tool, its model built from its signature."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from axolotl_core.app_link import AppLink
from axolotl_core.approval import Approval
from axolotl_core.function_feature import (
    FeatureOptions,
    FunctionFeature,
    check_function,
    check_options,
    features_of,
    is_method,
)
from axolotl_core.idempotency import Idempotency
from axolotl_core.parameters import parameters_schema
from axolotl_core.resilience import Breaker, Retry
from axolotl_core.schema import JsonSchema
from axolotl_core.tool import ITool, TaskSupport, ToolAnnotations

__all__ = ["FunctionTool", "ToolOptions", "tool", "tools_of"]

P = ParamSpec("P")
R = TypeVar("R")


class ToolOptions(FeatureOptions, total=False):
    """What `@tool` accepts; each stands for the attribute of the same name of `ITool`."""

    annotations: ToolAnnotations
    app: str | AppLink
    task_support: TaskSupport
    coerce_arguments: bool
    requires_approval: bool | Approval
    idempotency: Idempotency
    retry: Retry
    breaker: Breaker


class FunctionTool(FunctionFeature[P, R], ITool[dict[str, Any], Any]):
    """The tool that `@tool` makes; calling it calls the function."""

    collector = "tools_of"

    def __init__(self, function: Callable[P, R], options: ToolOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.output_model = self.returned  # type: ignore[misc]

    def __get__(self, instance: object | None, owner: type) -> "FunctionTool[..., R]":
        if instance is None or self._bound:
            return self
        method = self.function.__get__(instance, owner)
        return FunctionTool(method, self._options)  # type: ignore[arg-type]

    @property
    def input_schema(self) -> JsonSchema:
        """The schema of the function's parameters."""
        return parameters_schema(self._signature.parameters)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function or a method.

    An `async def` runs on the event loop, a plain `def` in a worker thread unless `execution="loop"` says otherwise.
    A parameter annotated with `ToolContext` receives the context and is no argument of the tool.

    Raises:
        ConfigurationError: if the signature is none that a caller can fill by name, or there is no such option.
    """
    check_options("tool", options, ToolOptions.__annotations__)

    def decorate(target: Callable[P, R]) -> FunctionTool[P, R]:
        check_function(target, "tool")
        return FunctionTool(target, options, bound=not is_method(target))

    return decorate if function is None else decorate(function)


def tools_of(instance: object) -> tuple[FunctionTool[..., Any], ...]:
    """Collect the `@tool` methods of an object, bound to it, in the order of their definition."""
    return features_of(instance, FunctionTool)
