"""Making and checking the objects of the roles of a container."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import isroutine
from typing import Any, TypeVar

from dependency_injector import containers, providers
from msgspec import structs
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.attributes import place_of
from axolotl_core.health import check_health_checks
from axolotl_core.layers import ILayer
from axolotl_core.names import INameRule, check_name, is_within_toolset, nearest
from axolotl_core.prompts import check_prompt
from axolotl_core.registry import AnyTool, Registry
from axolotl_core.resources.resource import check_resource
from axolotl_core.schema import explain_type_error
from axolotl_core.tools.tool import check_definition
from axolotl_server.bundled import BUNDLED
from axolotl_server.extension import Extension, FeatureSet, check_extension
from axolotl_server.hosting.role_mistakes import (
    extension_failure,
    misspelled_roles,
    provider_failure,
    roles_without_provider,
    undefined_dependencies,
)
from axolotl_server.hosting.roles import FEATURES, ROLES, Role, Roles
from axolotl_server.protocol.extensions import faults_of_methods
from axolotl_server.settings.server import ServerSettings


def sources_of(container: Any, role: str, within: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """Return the providers of a role, each with the name of its set, None for those outside of any set.

    A set is a member of an aggregate, or a sub-container at any depth.
    """
    prefix = "" if within is None else f"{within}."
    for name, provider in container.providers.items():
        if name == role and isinstance(provider, providers.Aggregate):
            yield from ((f"{prefix}{part}", source) for part, source in provider.providers.items())
        elif name == role:
            yield within, provider
        elif isinstance(provider, providers.Container):
            yield from sources_of(provider, role, f"{prefix}{name}")


async def resolved(provider: Any) -> Any:
    """Get the object of a provider, or raise ConfigurationError if that fails."""
    try:
        value = provider()
        return await value if inspect.isawaitable(value) else value
    except ConfigurationError:
        raise
    except Exception as error:
        raise provider_failure(provider, error) from error


def flat(value: Any) -> Iterator[Any]:
    """Flatten nested lists."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        for item in value:
            yield from flat(item)
    else:
        yield value


ItemT = TypeVar("ItemT")


async def resolve_settings(container: containers.Container) -> Mapping[str, Any]:
    """Return the settings of the container, if it has the role `settings`."""
    provider = container.providers.get("settings")
    value = None if provider is None else await resolved(provider)
    if value is None:
        return {}
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return value
    raise ConfigurationError(f"The role settings returned {type(value).__name__}; return ServerSettings or a mapping")


async def resolve_roles(
    container: containers.Container, chosen: Sequence[str] = (), settings: ServerSettings | None = None
) -> Roles:
    """Make and check the objects of all roles; a ConfigurationError lists everything that is wrong.

    Without `chosen`, all tool sets are served.
    """
    offers = frozenset(_offers(container))
    findings = [
        *undefined_dependencies(container),
        *_unknown_toolsets(container, chosen),
        *roles_without_provider(container),
        *(misspelled_roles(container) if not offers else ()),
    ]
    if not offers and "extensions" not in container.providers and not findings:
        *first, last = FEATURES
        findings.append(
            f"The container has no role {', '.join(first)} or {last}: write "
            "tools = providers.List(providers.Singleton(MyTool)), or give it sub-containers that have one"
        )
    if findings:
        raise ConfigurationError(*findings)
    given = {
        name: await _given(container, name, role)
        for name, role in ROLES.items()
        if role.port is not None and name in container.providers
    }
    roles = Roles(**given, known_sets=tuple(toolset_names(container)), offers=offers)
    sets = {
        kind: [FeatureSet(None, registry.get_all()), *await _chosen_sets(sources_of(container, kind), chosen)]
        for kind, registry in roles.registries.items()
    }
    roles = structs.replace(roles, sets=sets)
    faults = list(_faults(roles.extensions, check_extension))
    if not faults:
        roles = await _with_features_of(roles.extensions, roles, faults)
        bundled = await _bundled(container, chosen, roles.tools, settings or ServerSettings())
        roles = structs.replace(await _with_features_of(bundled, roles, faults), bundled=bundled)
        faults += _twins((*bundled, *roles.extensions))
    faults = list(_faults_of(roles, faults))
    if faults:
        raise ConfigurationError(*faults)
    return roles


async def _bundled(
    container: Any, chosen: Sequence[str], tools: Sequence[AnyTool], settings: ServerSettings
) -> tuple[Extension, ...]:
    """Make the extensions that come with the server and that the container needs, from the objects of their roles."""
    made = []
    for one in BUNDLED:
        found = {role: sources for role in one.roles if (sources := tuple(sources_of(container, role)))}
        if one.is_used(found, tools, settings):
            made.append(one.load()(**{role: await _chosen_sets(sources, chosen) for role, sources in found.items()}))
    return tuple(made)


async def _with_features_of(extensions: Sequence[Extension], roles: Roles, faults: list[str]) -> Roles:
    """Add the features of extensions, and what is wrong with them."""
    sets = {kind: [*of_kind] for kind, of_kind in roles.sets.items()}
    for extension in extensions:
        try:
            for kind, added in (await extension.features()).items():
                sets.setdefault(kind, []).extend(added)
        except Exception as error:
            faults += extension_failure(extension.identifier, "features", error).findings
    offers = roles.offers | {kind for kind, of_kind in sets.items() if any(one.items for one in of_kind)}
    return structs.replace(roles, offers=offers, sets=sets)


def _faults_of(roles: Roles, faults_of_extensions: Sequence[str]) -> Iterator[str]:
    """Find objects of the wrong type, and names that break a rule or collide."""
    yield from _faults(roles.tools, partial(_check_tool, rule=roles.name_rule))
    yield from _faults(roles.prompts, check_prompt)
    yield from _faults(roles.resources, check_resource)
    yield from faults_of_extensions
    for kind, registry in roles.registries.items():
        yield from _collisions(roles.sets[kind], registry, kind)
    yield from _strangers(roles)
    yield from _faults([roles.health_checks], check_health_checks)


def _twins(extensions: Sequence[Extension]) -> Iterator[str]:
    """Find identifiers, sections and methods that two extensions have."""
    for what, names in (
        ("identifier", [one.identifier for one in extensions]),
        ("section", [one.section for one in extensions if one.section]),
    ):
        yield from (f"Two extensions have the {what} {name!r}" for name, count in Counter(names).items() if count > 1)
    yield from faults_of_methods(extensions)


def toolset_names(container: containers.Container) -> list[str]:
    """Return the names of the tool sets of a container."""
    return [*dict.fromkeys(name for role in FEATURES for name, _ in sources_of(container, role) if name)]


def _offers(container: Any) -> Iterator[str]:
    for role in FEATURES:
        if f"{role.removesuffix('s')}_registry" in container.providers or any(sources_of(container, role)):
            yield role
            yield from (kind for one in BUNDLED if role in one.roles for kind in one.offers)


async def _chosen_sets(sources: Iterable[tuple[str | None, Any]], chosen: Sequence[str]) -> list[FeatureSet]:
    """Make the features of each set that is chosen or inside of a chosen one, and of those outside of any set."""
    wanted = [one for one in sources if not chosen or one[0] is None or is_within_toolset(one[0], chosen)]
    return [FeatureSet(name, tuple(flat(await resolved(source)))) for name, source in wanted]


async def _given(container: Any, name: str, role: Role) -> Any:
    """Make the object or the objects of a role."""
    value = await resolved(container.providers[name])
    if role.is_list:
        return tuple(flat(value))
    if not isinstance(value, role.port):
        raise ConfigurationError(f"The role {name} returned {type(value).__name__}; expected {role.port.__name__}")
    return value


def _unknown_toolsets(container: containers.Container, chosen: Sequence[str]) -> Iterator[str]:
    known = toolset_names(container)
    for name in chosen:
        if not any(is_within_toolset(toolset, (name,)) for toolset in known):
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"available: {', '.join(known) or 'none'}"
            yield f"There is no tool set {name!r}; {hint}"


def _faults(items: Any, check: Callable[[Any], None]) -> Iterator[str]:
    for item in items:
        try:
            check(item)
        except ConfigurationError as error:
            yield from error.findings
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            yield f"{item.name!r}{place_of(item)} cannot be used: {explain_type_error(error)}"


def _check_tool(tool: AnyTool, rule: INameRule) -> None:
    check_definition(tool)
    check_name(tool, rule)


def _collisions(sets: Sequence[FeatureSet], registry: Registry[ItemT], kind: str) -> Iterator[str]:
    seen: dict[str, tuple[Any, str | None]] = {}
    for feature_set in sets:
        for item in feature_set.items:
            name = _name(registry, item)
            if name and name in seen:
                first, second = _where(registry, *seen[name]), _where(registry, item, feature_set.name)
                yield f"Two {kind} have the same name: {first} and {second}"
            seen.setdefault(name, (item, feature_set.name))


def _name(registry: Registry[Any], item: Any) -> str:
    try:
        return registry.key(registry.name_of(item))
    except AttributeError:  # not a feature at all, which another finding says
        return ""


def _where(registry: Registry[Any], item: Any, feature_set: str | None) -> str:
    owner = getattr(item, "function", type(item))
    place = f" in tool set {feature_set!r}" if feature_set else ""
    written = place_of(item).strip(" ()")
    line = f", {written}" if written else ""
    return f"{registry.name_of(item)!r} ({owner.__module__}.{owner.__qualname__}{place}{line})"


def _strangers(roles: Roles) -> Iterator[str]:
    for name in ("layers", "audit_sinks"):  # the other lists have checks of their own
        port = ROLES[name].port
        for item in getattr(roles, name):
            if not isinstance(item, port) and not (port is ILayer and isroutine(item)):
                yield f"The role {name} contains {type(item).__name__}, which is not an {port.__name__}"
