"""`scan`, `scan_prompts` and `scan_resources`: features found in the modules of a package."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.function_feature import FunctionFeature
from axolotl_core.prompts import IPrompt
from axolotl_core.resources.resource import IResource, IResourceTemplate
from axolotl_core.tools.tool import ITool

_OPTIONAL = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def scan(package: str, /, **dependencies: Any) -> tuple[ITool[Any, Any], ...]:
    """Collect the `ITool` subclasses and `@tool` functions of a package and the modules below it.

    The constructor of a class receives those of the `dependencies` that it has parameters for. In a container, write
    `providers.Callable(scan, "acme.tools", repository=repository)`. Features that a module only imports are ignored.

    `scanned = False` in a class, which subclasses do not inherit, or `@tool(scanned=False)`, leaves it out.

    Raises:
        ConfigurationError: if the package does not exist, or a constructor needs a dependency that is missing.
    """
    return tuple(_scan("scan", package, dependencies, ITool))


def scan_prompts(package: str, /, **dependencies: Any) -> tuple[IPrompt[Any], ...]:
    """Collect the `IPrompt` subclasses and `@prompt` functions of a package, as `scan` does for tools.

    Raises:
        ConfigurationError: if the package does not exist, or a constructor needs a dependency that is missing.
    """
    return tuple(_scan("scan_prompts", package, dependencies, IPrompt))


def scan_resources(package: str, /, **dependencies: Any) -> tuple[IResource | IResourceTemplate[Any], ...]:
    """Collect the `IResource` and `IResourceTemplate` subclasses and `@resource` functions, as `scan` does for tools.

    Raises:
        ConfigurationError: if the package does not exist, or a constructor needs a dependency that is missing.
    """
    return tuple(_scan("scan_resources", package, dependencies, IResource, IResourceTemplate))


def features_in(module: ModuleType, *kinds: type) -> Iterator[Any]:
    """Find what a module defines itself: function features, and classes that are neither abstract nor generic."""
    distinct = {id(value): value for value in vars(module).values()}  # a feature can have several names
    for value in distinct.values():
        if isinstance(value, FunctionFeature) and isinstance(value, kinds):
            if value.scanned and value.function.__module__ == module.__name__:
                yield value
        elif inspect.isclass(value) and issubclass(value, kinds) and value.__module__ == module.__name__:
            is_complete = not inspect.isabstract(value) and not getattr(value, "__parameters__", ())
            if is_complete and vars(value).get("scanned", True):
                yield value


def needed_arguments(kind: type) -> list[str]:
    """Return the arguments that a constructor needs."""
    return [
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in _OPTIONAL
    ]


def _scan(name: str, package: str, dependencies: Mapping[str, Any], *kinds: type) -> Iterator[Any]:
    """Find the features of a package; `name` is the function that its author has called."""
    try:
        root = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{package}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(f"{name}({package!r}): module {error.name!r} does not exist") from error
    below = pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}.")
    for module in (root, *(importlib.import_module(entry.name) for entry in below)):
        for found in features_in(module, *kinds):
            yield _build(found, name, dependencies) if inspect.isclass(found) else found


def _build(kind: type, name: str, dependencies: Mapping[str, Any]) -> Any:
    missing = [argument for argument in needed_arguments(kind) if argument not in dependencies]
    if missing:
        needs = ", ".join(f"{argument}=…" for argument in missing)
        raise ConfigurationError(f"{kind.__module__}.{kind.__name__} needs {needs}: pass it to {name}(…)")
    parameters = inspect.signature(kind).parameters
    return kind(**{argument: value for argument, value in dependencies.items() if argument in parameters})
