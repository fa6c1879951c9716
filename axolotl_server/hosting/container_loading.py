"""Loading the container that a target names or a module makes up, and starting its resources."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dependency_injector import containers, providers

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.attributes import place_of
from axolotl_core.features.function_feature import FunctionFeature
from axolotl_core.names import did_you_mean, nearest
from axolotl_core.prompts import IPrompt
from axolotl_core.resources.resource import IResource, IResourceTemplate
from axolotl_core.scanning import features_in, needed_arguments
from axolotl_core.schema import explain_type_error
from axolotl_core.tools.tool import ITool
from axolotl_server.hosting.role_mistakes import place_of_error

_DEFAULT_NAMES = ("Container", "container")
_KINDS = {"tools": (ITool,), "prompts": (IPrompt,), "resources": (IResource, IResourceTemplate)}
"""The features that are served without a container, by role."""
_MAX_FILES = 1000
"""How many files of a directory are compared with a misspelled name."""


def load_container(target: str) -> containers.Container:
    """Import `pkg.module:Attr` or `path/file.py:Attr` and make the container that it names.

    The attribute may be a container class, a container, or a function that makes one. A module without a container
    gets one with the features that it defines. If there is no such module or attribute, or it is not a container, a
    ConfigurationError says so.
    """
    place, attribute = _split(target)
    module = _import_file(place) if place.endswith(".py") else _import_module(place)
    attribute = attribute or _usual_name(module)
    return _container_of(_attribute_of(module, attribute), target) if attribute else _container_around(module, target)


class ImportPath(NamedTuple):
    """How code imports a container."""

    module: str
    attribute: str
    """Empty if the module has no container."""
    is_called: bool
    """Whether the attribute has to be called to get the container."""


def import_path(target: str) -> ImportPath:
    """Return how a test imports the container of a target that was loaded, from the directory of its file."""
    place, attribute = _split(target)
    name = Path(place).stem if place.endswith(".py") else place
    module = sys.modules[name]
    attribute = attribute or _usual_name(module)
    return ImportPath(name, attribute, bool(attribute) and not _is_container(_attribute_of(module, attribute)))


async def start_resources(container: containers.Container) -> None:
    """Start the resources of a container, or raise ConfigurationError, which names those that did not start."""
    try:
        outcome: Any = container.init_resources()
        if inspect.isawaitable(outcome):
            await outcome
    except Exception as error:
        kind = providers.BaseResource
        resources = [(name, one) for name, one in container.providers.items() if isinstance(one, kind)]
        names = ", ".join(name for name, one in resources if not one.initialized)
        problem = str(error) if isinstance(error, ConfigurationError) else f"{type(error).__name__}: {error}"
        which = f" ({names})" if names else ""
        place = "" if isinstance(error, ConfigurationError) else place_of_error(error)
        raise ConfigurationError(f"A resource of the container failed to start{which}{place}: {problem}") from error


def _split(target: str) -> tuple[str, str]:
    """Separate the module or file of a target from the attribute, which can be missing."""
    place, _, attribute = target.rpartition(":")
    return (target, "") if not place or attribute.startswith(("/", "\\")) else (place, attribute)


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigurationError(
            f"{name!r} is not the name of a module: give pkg.module:Container or path/file.py:Container"
        )
    try:
        with _first_in_path(Path.cwd()):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            files = (one.stem for one in islice(Path.cwd().glob("*.py"), _MAX_FILES))
            remedy = ": give pkg.module:Container or path/file.py:Container, and run from the directory that holds it"
            raise ConfigurationError(
                f"Module {error.name!r} not found{did_you_mean(error.name, files, remedy)}"
            ) from error
        raise _failed(f"Module {name!r}", error) from error
    except Exception as error:
        raise _failed(f"Module {name!r}", error) from error


def _import_file(path: str) -> ModuleType:
    file = Path(path).resolve()
    if not file.is_file():
        near = nearest(file.stem, (one.stem for one in islice(file.parent.glob("*.py"), _MAX_FILES)))
        hint = f"; did you mean {os.path.join(os.path.dirname(path), near)}.py?" if near else ""
        raise ConfigurationError(f"There is no file {path}{hint}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        with _first_in_path(file.parent):
            spec.loader.exec_module(module)
    except Exception as error:
        raise _failed(f"File {path}", error) from error
    return module


@contextmanager
def _first_in_path(directory: Path) -> Iterator[None]:
    """Import from a directory first, and last after the block: a file there must not shadow a library."""
    place = str(directory)
    if place in sys.path:
        yield
        return
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)
        sys.path.append(place)


def _failed(what: str, error: Exception) -> ConfigurationError:
    if isinstance(error, ConfigurationError):  # it says where the mistake is
        return ConfigurationError(*error.findings)
    place = "" if isinstance(error, SyntaxError) else place_of_error(error)
    return ConfigurationError(
        f"{what} was found, but importing it failed{place}: {type(error).__name__}: {explain_type_error(error)}"
    )


def _usual_name(module: ModuleType) -> str:
    """Return the name that a container usually has; empty if nothing in the module has it."""
    return next((name for name in _DEFAULT_NAMES if hasattr(module, name)), "")


def _attribute_of(module: ModuleType, attribute: str) -> Any:
    value: Any = module
    for name in attribute.split("."):
        if not hasattr(value, name):
            hint = did_you_mean(name, (known for known in vars(module) if not known.startswith("_")))
            raise ConfigurationError(f"{module.__name__!r} has no attribute {name!r}{hint}")
        value = getattr(value, name)
    return value


def _container_around(module: ModuleType, target: str) -> containers.Container:
    """Make a container of the features that a module defines: a first server needs none of its own."""
    features = {role: [*features_in(module, *kinds)] for role, kinds in _KINDS.items()}
    found = [feature for of_kind in features.values() for feature in of_kind]
    named = [name for name, value in vars(module).items() if _is_own_container(value, module)]
    if named or not found:
        lacks = "does not name a container" if named else "has no container, and defines no tool, prompt or resource"
        remedy = " or ".join(f"{target}:{name}" for name in named) or f"a function with @tool, or {target}:Container"
        raise ConfigurationError(f"{target} {lacks}: write {remedy}")
    needs = {one: needed_arguments(one) for one in found if inspect.isclass(one)}
    findings = [
        f"{one.__name__}{place_of(one)} needs {', '.join(names)}, which a container passes, and {target} has none: "
        f"write class Container(containers.DeclarativeContainer) with a provider of {one.__name__}, such as "
        f"providers.Singleton({one.__name__}, {', '.join(f'{name}=…' for name in names)})"
        for one, names in needs.items()
        if names
    ]
    if findings:
        raise ConfigurationError(*findings)
    made = containers.DynamicContainer()
    for role in filter(features.get, features):
        each = [providers.Singleton(one) if inspect.isclass(one) else providers.Object(one) for one in features[role]]
        made.set_provider(role, providers.List(*each))
    return made


def _container_of(value: Any, target: str) -> containers.Container:
    try:
        is_ready = _is_container(value) or isinstance(value, FunctionFeature)
        made = value() if isinstance(value, type | Callable) and not is_ready else value
    except Exception as error:
        place = place_of_error(error)
        raise ConfigurationError(
            f"{target} failed when it was called{place}: {type(error).__name__}: {error}"
        ) from error
    if not _is_container(made):
        raise ConfigurationError(f"{target} is {type(made).__name__}, not a dependency-injector container")
    return made  # type: ignore[no-any-return]


def _is_own_container(value: Any, module: ModuleType) -> bool:
    """Tell whether a value is a container, or the class of one that the module defines."""
    is_class = inspect.isclass(value) and issubclass(value, containers.DeclarativeContainer)
    return (is_class and value.__module__ == module.__name__) or _is_container(value)


def _is_container(value: Any) -> bool:
    return isinstance(value, containers.Container) and not isinstance(value, type)
