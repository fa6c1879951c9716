"""Attribute-driven registration: collect every tool that a package defines."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from axolotl_core.errors import ConfigurationError
from axolotl_core.function_tool import FunctionTool
from axolotl_core.tool import ITool

__all__ = ["scan"]


def scan(package: str, /, **dependencies: Any) -> tuple[ITool[Any, Any], ...]:
    """Collect the `ITool` subclasses and `@tool` functions of a package and the modules below it.

    A class is made with those of the `dependencies` that its constructor names, so that a container can say
    `providers.Callable(scan, "acme.tools", repository=repository)`. Only what a module defines itself counts,
    not what it imports.

    Raises:
        ConfigurationError: if the package is not there, or a constructor needs something that was not given.
    """
    found: list[ITool[Any, Any]] = []
    for module in _modules(package):
        found.extend(_tools_in(module, dependencies))
    return tuple(found)


def _modules(package: str) -> Iterator[ModuleType]:
    try:
        root = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{package}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(f"scan({package!r}): there is no module {error.name!r}") from error
    yield root
    for entry in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}."):
        yield importlib.import_module(entry.name)


def _tools_in(module: ModuleType, dependencies: dict[str, Any]) -> Iterator[ITool[Any, Any]]:
    once = {id(value): value for value in vars(module).values()}  # a second name is no second tool
    for value in once.values():
        if isinstance(value, FunctionTool):
            if value.function.__module__ == module.__name__:
                yield value
        elif _is_tool_class(value) and value.__module__ == module.__name__:
            yield _build(value, dependencies)


def _is_tool_class(value: Any) -> bool:
    """Tell a class that can be made from an abstract one and from one that still lacks type arguments."""
    if not inspect.isclass(value) or not issubclass(value, ITool):
        return False
    return not inspect.isabstract(value) and not getattr(value, "__parameters__", ())


def _build(kind: type[ITool[Any, Any]], dependencies: dict[str, Any]) -> ITool[Any, Any]:
    parameters = inspect.signature(kind).parameters
    given = {name: dependencies[name] for name in parameters if name in dependencies}
    missing = [
        name
        for name, parameter in parameters.items()
        if name not in given and parameter.default is parameter.empty and parameter.kind not in _OPTIONAL
    ]
    if missing:
        needs = ", ".join(f"{name}=…" for name in missing)
        raise ConfigurationError(f"{kind.__module__}.{kind.__name__} needs {needs}: pass it to scan(…)")
    return kind(**given)


_OPTIONAL = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
