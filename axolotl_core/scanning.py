"""`scan`, `scan_prompts` and `scan_resources`: features found in the modules of a package."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import msgspec

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
    return tuple(_Scan("scan", (ITool,), dependencies).features_in(package))


def scan_prompts(package: str, /, **dependencies: Any) -> tuple[IPrompt[Any], ...]:
    """Collect the `IPrompt` subclasses and `@prompt` functions of a package, as `scan` does for tools.

    Raises:
        ConfigurationError: if the package does not exist, or a constructor needs a dependency that is missing.
    """
    return tuple(_Scan("scan_prompts", (IPrompt,), dependencies).features_in(package))


def scan_resources(package: str, /, **dependencies: Any) -> tuple[IResource | IResourceTemplate[Any], ...]:
    """Collect the `IResource` and `IResourceTemplate` subclasses and `@resource` functions, as `scan` does for tools.

    Raises:
        ConfigurationError: if the package does not exist, or a constructor needs a dependency that is missing.
    """
    return tuple(_Scan("scan_resources", (IResource, IResourceTemplate), dependencies).features_in(package))


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


class _Scan(msgspec.Struct, frozen=True):
    name: str
    kinds: tuple[type, ...]
    dependencies: Mapping[str, Any]

    def features_in(self, package: str) -> Iterator[Any]:
        for module in self._modules(package):
            for found in features_in(module, *self.kinds):
                yield self._build(found) if inspect.isclass(found) else found

    def _modules(self, package: str) -> Iterator[ModuleType]:
        try:
            root = importlib.import_module(package)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{package}.".startswith(f"{error.name}."):
                raise
            raise ConfigurationError(f"{self.name}({package!r}): module {error.name!r} does not exist") from error
        yield root
        for entry in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}."):
            yield importlib.import_module(entry.name)

    def _build(self, kind: type) -> Any:
        missing = [name for name in needed_arguments(kind) if name not in self.dependencies]
        if missing:
            needs = ", ".join(f"{name}=…" for name in missing)
            raise ConfigurationError(f"{kind.__module__}.{kind.__name__} needs {needs}: pass it to {self.name}(…)")
        parameters = inspect.signature(kind).parameters
        return kind(**{name: value for name, value in self.dependencies.items() if name in parameters})
