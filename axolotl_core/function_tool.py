"""`@tool`: a function or a method as a tool, its model built from its signature."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from axolotl_core.arguments import ParseArguments
from axolotl_core.context import ToolContext
from axolotl_core.errors import ConfigurationError
from axolotl_core.parameters import parameters_parser, parameters_schema
from axolotl_core.protocol.identity import Icon
from axolotl_core.schema import JsonSchema
from axolotl_core.signature import Signature
from axolotl_core.stream_tool import buffer, buffered_type
from axolotl_core.tool import Execution, ITool, ToolAnnotations

__all__ = ["FunctionTool", "ToolOptions", "tool", "tools_of"]

P = ParamSpec("P")
R = TypeVar("R")


class ToolOptions(TypedDict, total=False):
    """What `@tool` accepts; each stands for the attribute of the same name of `ITool`."""

    name: str
    description: str
    title: str
    annotations: ToolAnnotations
    icons: tuple[Icon, ...]
    meta: Mapping[str, Any]
    tags: frozenset[str]
    timeout_seconds: float
    max_concurrency: int
    execution: Execution
    coerce_arguments: bool


class FunctionTool(ITool[dict[str, Any], Any], Generic[P, R]):
    """The tool that `@tool` makes; calling it calls the function."""

    def __init__(self, function: Callable[P, R], options: ToolOptions, *, bound: bool = True) -> None:
        self.function = function
        self._options = options
        self._bound = bound
        self._signature = Signature.of(function, skip_first=not bound)
        self._streams = inspect.isasyncgenfunction(function)
        returned = self._signature.returned
        self.output_model = buffered_type(returned) if self._streams else returned  # type: ignore[misc]
        self._is_async = inspect.iscoroutinefunction(function) or self._streams
        self.name = function.__name__
        self.description = self._signature.description
        self.execution = "loop" if self._is_async else "thread"
        self.suspends = self._is_async
        for key, value in options.items():
            setattr(self, key, value)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object | None, owner: type) -> "FunctionTool[..., R]":
        if instance is None or self._bound:
            return self
        method = self.function.__get__(instance, owner)
        return FunctionTool(method, self._options)

    @property
    def input_schema(self) -> JsonSchema:
        """The schema of the function's parameters."""
        return parameters_schema(self._signature.parameters)

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        """Compile what turns raw JSON into the function's arguments.

        Raises:
            ConfigurationError: if the function is a method that lacks its object.
        """
        if not self._bound:
            raise ConfigurationError(f"{self.name} is a method: register tools_of(instance), not the class's function")
        return parameters_parser(self._signature.parameters, strict=not coerce)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Call the function."""
        for name in self._signature.context_parameters:
            arguments[name] = context
        result: Any = self.function(**arguments)  # type: ignore[call-arg]
        if self._streams:
            return await buffer(cast(AsyncIterator[Any], result), context, self.output_model)
        return await cast(Awaitable[Any], result) if self._is_async else result


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
    unknown = options.keys() - ToolOptions.__annotations__.keys()
    if unknown:
        raise ConfigurationError(f"@tool has no option {', '.join(sorted(unknown))}")

    def decorate(target: Callable[P, R]) -> FunctionTool[P, R]:
        if isinstance(target, classmethod):
            raise ConfigurationError(f"{target.__qualname__}: a class method is no tool; make it a method or static")
        return FunctionTool(target, options, bound=not _is_method(target))

    return decorate if function is None else decorate(function)


def tools_of(instance: object) -> tuple[FunctionTool[..., Any], ...]:
    """Collect the `@tool` methods of an object, bound to it, in the order of their definition."""
    names = {name: None for kind in reversed(type(instance).__mro__) for name in vars(kind)}
    found = (getattr(instance, name) for name in names if isinstance(_static(instance, name), FunctionTool))
    return tuple(found)


def _static(instance: object, name: str) -> object:
    found = inspect.getattr_static(instance, name, None)
    return found.__func__ if isinstance(found, staticmethod) else found


def _is_method(function: Callable[..., Any]) -> bool:
    """Tell a function defined in a class body from one defined in a module or another function."""
    first = next(iter(inspect.signature(function).parameters), None)
    return first == "self" and "." in function.__qualname__.rpartition("<locals>.")[2]
