"""Functions and methods as features: what `@tool`, `@prompt` and `@resource` have in common."""

import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypedDict, TypeVar, cast

from axolotl_core.arguments import ParseArguments
from axolotl_core.context import ToolContext
from axolotl_core.errors import ConfigurationError
from axolotl_core.feature import Execution, IFeature
from axolotl_core.parameters import parameters_parser
from axolotl_core.protocol.identity import Icon
from axolotl_core.signature import Signature
from axolotl_core.stream_tool import buffer, buffered_type

__all__ = ["FeatureOptions", "FunctionFeature", "check_function", "check_options", "features_of", "is_method"]

P = ParamSpec("P")
R = TypeVar("R")
FeatureT = TypeVar("FeatureT", bound="FunctionFeature[..., Any]")


class FeatureOptions(TypedDict, total=False):
    """What every decorator accepts; each stands for the attribute of the same name of `IFeature`."""

    name: str
    description: str
    title: str
    icons: tuple[Icon, ...]
    meta: Mapping[str, Any]
    tags: frozenset[str]
    timeout_seconds: float
    max_timeout_seconds: float
    max_concurrency: int
    queue_limit: int
    queue_timeout_seconds: float
    pool: str
    max_result_bytes: int
    scopes: frozenset[str]
    cost: float
    execution: Execution


class FunctionFeature(IFeature, Generic[P, R]):
    """A feature made of a function; calling it calls the function."""

    collector: ClassVar[str]
    """The name of the function that collects the decorated methods of an object."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any], *, bound: bool = True) -> None:
        if isinstance(function, staticmethod):
            function = function.__func__
        self.function = function
        self._options = options
        self._bound = bound
        self._signature = Signature.of(function, skip_first=not bound)
        self.streams = inspect.isasyncgenfunction(function)
        """Whether a call yields its output piece by piece."""
        returned = self._signature.returned
        self.returned = buffered_type(returned) if self.streams else returned
        """The type of what a call gives."""
        self._is_async = inspect.iscoroutinefunction(function) or self.streams
        self.name = function.__name__
        self.description = self._signature.description
        self.execution = "loop" if self._is_async else "thread"
        self.suspends = self._is_async
        for key, value in options.items():
            setattr(self, key, value)

    def __reduce__(self) -> Any:
        """Travel to another process by name, or, as a method, by its object and its name."""
        owner = getattr(self.function, "__self__", None)
        if owner is not None:
            return getattr, (owner, self.function.__name__)
        return _find, (self.function.__module__, self.function.__qualname__)

    def __copy__(self) -> Self:
        """Be copied as it is: what `copy` would do else is what it does for a journey, which leads to the original."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        """Compile what turns raw JSON into the function's arguments.

        Raises:
            ConfigurationError: if the function is a method that lacks its object.
        """
        if not self._bound:
            raise ConfigurationError(
                f"{self.name} is a method: register {self.collector}(instance), not the class's function"
            )
        return parameters_parser(self._signature.parameters, strict=not coerce)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Call the function."""
        for name in self._signature.context_parameters:
            arguments[name] = context
        result: Any = self.function(**arguments)  # type: ignore[call-arg]
        if self.streams:
            return await buffer(cast(AsyncIterator[Any], result), context, self.returned)
        return await cast(Awaitable[Any], result) if self._is_async else result


def _find(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def check_options(decorator: str, options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse an option that a decorator does not have.

    Raises:
        ConfigurationError: with its name.
    """
    unknown = options.keys() - known.keys()
    if unknown:
        raise ConfigurationError(f"@{decorator} has no option {', '.join(sorted(unknown))}")


def check_function(function: Any, kind: str) -> None:
    """Refuse what is decorated in the wrong place.

    Raises:
        ConfigurationError: for anything but a function or a method.
    """
    if isinstance(function, IFeature):
        raise ConfigurationError(f"@{kind} on {function.name!r}, which is a feature already: write a function for each")
    if isinstance(function, classmethod):
        raise ConfigurationError(f"{function.__qualname__}: a class method is no {kind}; make it a method or static")
    if inspect.isclass(function) or not hasattr(function, "__qualname__"):
        raise ConfigurationError(f"@{kind} goes on a function or a method, not on {function!r}")


def is_method(function: Callable[..., Any]) -> bool:
    """Tell a function defined in a class body from one defined in a module or another function."""
    first = next(iter(inspect.signature(function).parameters), None)
    return first == "self" and "." in function.__qualname__.rpartition("<locals>.")[2]


def features_of(instance: object, kind: type[FeatureT]) -> tuple[FeatureT, ...]:
    """Collect the decorated methods of an object, bound to it, in the order of their definition."""
    names = {name: None for owner in reversed(type(instance).__mro__) for name in vars(owner)}
    return tuple(getattr(instance, name) for name in names if isinstance(_static(instance, name), kind))


def _static(instance: object, name: str) -> object:
    found = inspect.getattr_static(instance, name, None)
    return found.__func__ if isinstance(found, staticmethod) else found
