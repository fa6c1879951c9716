"""Mistakes in a container: misspelled roles, roles without a provider, objects that cannot be made."""

import inspect
import traceback
from collections.abc import Iterator
from typing import Any, Final

from dependency_injector import containers, errors, providers

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.attributes import place_of, relative_path
from axolotl_core.names import did_you_mean, nearest
from axolotl_core.schema import explain_type_error
from axolotl_server.hosting.roles import ROLES

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def undefined_dependencies(container: Any) -> Iterator[str]:
    """Find dependencies that were never given."""
    try:
        container.check_dependencies()
    except errors.Error as error:
        places = "".join(_places_of_undefined(container))
        yield f"{error}{places}: pass them when the container is made, or override them"


def _places_of_undefined(container: Any) -> Iterator[str]:
    for one in container.traverse(types=[providers.Dependency]):
        if isinstance(one.parent, containers.Container) and not one.is_defined:
            written: Any = getattr(one.parent, "declarative_parent", None)
            yield "" if written is None else place_of(written, one.parent_name.rpartition(".")[2])


def roles_without_provider(container: Any) -> Iterator[str]:
    """Find roles that are plain values."""
    written: Any = getattr(container, "declarative_parent", None)
    for name, value in ({} if written is None else vars(written)).items():
        if name in ROLES and name not in container.providers and not callable(value):
            yield (
                f"{written.__qualname__}.{name}{place_of(written, name)} is of type {type(value).__name__}, which is "
                f"not a provider: write {name} = {ROLES[name].example}"
            )


def misspelled_roles(container: Any) -> Iterator[str]:
    """Find providers that nothing uses and whose names resemble a role."""
    known = container.providers
    candidates = {
        name: one
        for name, one in known.items()
        if name not in ROLES and _resembles_a_role(name) and not isinstance(one, providers.Container)
    }
    used = {id(one) for provider in known.values() for one in provider.traverse()} if candidates else set()
    written: Any = getattr(container, "declarative_parent", None)
    for name, provider in candidates.items():
        near = nearest(name, ROLES)
        if near is not None and near not in known and id(provider) not in used:
            where = "" if written is None else place_of(written, name)
            yield f"The container has {name!r}{where}, which is not a role; did you mean {near!r}?"


def _resembles_a_role(name: str) -> bool:
    """Sort out most names without a comparison that takes long."""
    letters = set(name)
    return any(abs(len(name) - len(role)) <= 2 and len(letters ^ set(role)) <= 3 for role in ROLES)


def provider_failure(provider: Any, error: Exception) -> ConfigurationError:
    """Describe why the object of a provider could not be made."""
    findings: tuple[str, ...] = ()
    if isinstance(error, TypeError):
        findings = tuple(_incomplete(provider))
    elif isinstance(error, RecursionError):
        findings = tuple(_cycle_among(provider))
    reason = f"{type(error).__name__}: {explain_type_error(error)}"
    text = f"A provider of the container failed{place_of_error(error)}: {reason}"
    return ConfigurationError(*(findings or (text,)))


def extension_failure(identifier: str, member: str, error: Exception) -> ConfigurationError:
    """Describe why a member of an extension failed at the start."""
    if isinstance(error, ConfigurationError):
        return error
    reason = f"{type(error).__name__}: {explain_type_error(error)}"
    return ConfigurationError(f"{member} of the extension {identifier} failed{place_of_error(error)}: {reason}")


def _cycle_among(provider: Any) -> Iterator[str]:
    """Describe a cycle of providers, each of which needs the object of the next one, if there is one."""
    cycle = _find_cycle(provider, [], set())
    made = [one.provides for one in cycle if hasattr(getattr(one, "provides", None), "__name__")]
    names = [f"{one.__name__}{place_of(one)}" for one in made]
    if names:
        yield (
            f"Providers of the container need each other: {' needs '.join([*names, made[0].__name__])}; "
            "leave one of them out, or pass the provider itself, such as orders.provider, and call it later"
        )


def _find_cycle(provider: Any, path: list[Any], seen: set[int]) -> list[Any]:
    """Follow the dependencies of a provider, and return the first cycle, or nothing."""
    if provider in path:
        return path[path.index(provider) :]
    if id(provider) in seen:
        return []
    seen.add(id(provider))
    found = (_find_cycle(one, [*path, provider], seen) for one in provider.related)
    return next(filter(None, found), [])


def place_of_error(error: BaseException) -> str:
    """Return ` (file:line)` of the user's code that raised an error; nothing if it was raised elsewhere."""
    from axolotl_server.observation.tracebacks import user_frames  # only errors need it

    frames = user_frames(traceback.extract_tb(error.__traceback__))
    return f" ({relative_path(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""


def _incomplete(provider: Any) -> Iterator[str]:
    """Find classes that a provider cannot create: abstract ones, and those with parameters that nothing provides."""
    related = (provider, *provider.traverse())
    for one in dict.fromkeys(one for one in related if inspect.isclass(getattr(one, "provides", None))):
        made, what = one.provides, f"{one.provides.__name__}{place_of(one.provides)}"
        if inspect.isabstract(made):
            methods = ", ".join(sorted(made.__abstractmethods__))
            yield f"{what} does not define {methods}: write async def {methods}(self, …)"
            continue
        try:
            parameters = inspect.signature(made).parameters
        except ValueError:  # a class that is not written in Python
            continue
        yield from _wrong_arguments(one, what, parameters)


def _wrong_arguments(provider: Any, what: str, parameters: Any) -> Iterator[str]:
    plain = [value for value in parameters.values() if value.kind not in _VARIADIC]
    is_open = any(value.kind is value.VAR_KEYWORD for value in parameters.values())
    unknown = () if is_open else [name for name in provider.kwargs if name not in parameters]
    for name in unknown:
        hint = did_you_mean(name, parameters, f": it has {', '.join(parameters) or 'none'}")
        yield f"{what} has no parameter {name}{hint}"
    left = [value for value in plain[len(provider.args) :] if value.name not in provider.kwargs]
    missing = [value.name for value in left if value.default is value.empty]
    if missing and not unknown:
        given = ", ".join(f"{name}={name}" for name in missing)
        yield (
            f"{what} needs {', '.join(missing)}: add a provider for it to the container, and write "
            f"providers.{type(provider).__name__}({provider.provides.__name__}, {given})"
        )
