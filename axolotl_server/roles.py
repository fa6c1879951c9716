"""The roles of a user's container: providers that the framework finds by their name."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dependency_injector import containers, errors, providers

from axolotl_core.errors import ConfigurationError
from axolotl_core.layer import ILayer
from axolotl_core.name_rule import DefaultNameRule, INameRule, check_name
from axolotl_core.names import nearest
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_core.tool import check_definition

__all__ = ["Roles", "ToolSet", "faults_of", "make_roles", "resolve_roles", "resolve_settings", "toolset_names"]

RoleT = TypeVar("RoleT")


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools that are served together; those outside any set have the name None."""

    name: str | None
    tools: tuple[AnyTool, ...]


@dataclass(frozen=True, slots=True)
class Roles:
    """What a user's container brings."""

    toolsets: tuple[ToolSet, ...]
    layers: tuple[ILayer, ...] = ()
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    """What is served: the tools that the container put into it, and those of the tool sets."""
    name_rule: INameRule = field(default_factory=DefaultNameRule)

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """All tools, in their order."""
        return tuple(tool for toolset in self.toolsets for tool in toolset.tools)


async def resolve_settings(container: containers.Container) -> Mapping[str, Any]:
    """Give what the container's `settings` role says, if it has one."""
    provider = container.providers.get("settings")
    value = None if provider is None else await _resolved(provider)
    if value is None:
        return {}
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return value
    raise ConfigurationError(f"The role settings gives {type(value).__name__}: give ServerSettings or a mapping")


async def resolve_roles(container: containers.Container, chosen: Sequence[str] = ()) -> Roles:
    """Make the container's tools and layers and check them.

    Raises:
        ConfigurationError: with everything that is wrong, at once.
    """
    roles = await make_roles(container, chosen)
    findings = faults_of(roles)
    if findings:
        raise ConfigurationError(*findings)
    return roles


async def make_roles(container: containers.Container, chosen: Sequence[str] = ()) -> Roles:
    """Make the container's tools and layers; `chosen` names the tool sets to serve, all where it is empty.

    Raises:
        ConfigurationError: if they cannot be made.
    """
    findings = [*_undefined(container), *_unknown_toolsets(container, chosen)]
    sources = list(_tool_providers(container))
    if not sources and "tool_registry" not in container.providers:
        findings.append(
            "The container has no role tools: write tools = providers.List(providers.Singleton(MyTool)), "
            "or give it sub-containers that have one"
        )
    if findings:
        raise ConfigurationError(*findings)
    registry: ToolRegistry = await _given(container, "tool_registry", ToolRegistry, ToolRegistry())
    name_rule: INameRule = await _given(container, "name_rule", INameRule, DefaultNameRule())
    wanted = [(name, source) for name, source in sources if not chosen or _is_within(name, chosen)]
    toolsets = [ToolSet(name, tuple(_flat(await _resolved(source)))) for name, source in wanted]
    layers = container.providers.get("layers")
    user_layers = () if layers is None else tuple(_flat(await _resolved(layers)))
    return Roles((ToolSet(None, registry.get_all()), *toolsets), user_layers, registry, name_rule)


def faults_of(roles: Roles) -> list[str]:
    """Find tools that are none, names that break a rule or collide, and layers that are none."""
    return [*_bad_tools(roles), *_collisions(roles), *_bad_layers(roles)]


def toolset_names(container: containers.Container) -> list[str]:
    """List the tool sets a container offers."""
    return [name for name, _ in _tool_providers(container) if name is not None]


def _tool_providers(container: Any, toolset: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """Walk the providers of tools: the role itself, the parts of an aggregate, and sub-containers at any depth."""
    prefix = "" if toolset is None else f"{toolset}."
    for name, provider in container.providers.items():
        if name == "tools" and isinstance(provider, providers.Aggregate):
            yield from ((f"{prefix}{part}", source) for part, source in provider.providers.items())
        elif name == "tools":
            yield toolset, provider
        elif isinstance(provider, providers.Container):
            yield from _tool_providers(provider, f"{prefix}{name}")


def _is_within(toolset: str | None, chosen: Sequence[str]) -> bool:
    """Tell whether a tool set is one of those chosen or stands inside of one; tools outside any set always are."""
    return toolset is None or any(f"{toolset}.".startswith(f"{name}.") for name in chosen)


async def _given(container: Any, role: str, port: Any, default: RoleT) -> RoleT:
    """Make what the container gives for a role that it need not have."""
    provider = container.providers.get(role)
    if provider is None:
        return default
    value: RoleT = await _resolved(provider)
    if not isinstance(value, port):
        raise ConfigurationError(f"The role {role} gives {type(value).__name__}, which is no {port.__name__}")
    return value


async def _resolved(provider: Any) -> Any:
    try:
        value = provider()
        return await value if inspect.isawaitable(value) else value
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"A provider of the container fails: {type(error).__name__}: {error}") from error


def _flat(value: Any) -> Iterator[Any]:
    """Give the single things in a nest of lists."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _undefined(container: Any) -> Iterator[str]:
    try:
        container.check_dependencies()
    except errors.Error as error:
        yield f"{error}: give them when the container is made, or override them"


def _unknown_toolsets(container: containers.Container, chosen: Sequence[str]) -> Iterator[str]:
    known = toolset_names(container)
    for name in chosen:
        if not any(_is_within(toolset, (name,)) for toolset in known):
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(known) or 'none'}"
            yield f"There is no tool set {name!r}; {hint}"


def _bad_tools(roles: Roles) -> Iterator[str]:
    for tool in roles.tools:
        try:
            check_definition(tool)
            check_name(tool, roles.name_rule)
        except ConfigurationError as error:
            yield from error.findings


def _collisions(roles: Roles) -> Iterator[str]:
    seen: dict[str, tuple[AnyTool, str | None]] = {}
    for toolset in roles.toolsets:
        for tool in toolset.tools:
            fold = getattr(tool, "name", "").casefold() if isinstance(getattr(tool, "name", ""), str) else ""
            if fold and fold in seen:
                yield f"Two tools have the same name: {_where(*seen[fold])} and {_where(tool, toolset.name)}"
            seen.setdefault(fold, (tool, toolset.name))


def _where(tool: AnyTool, toolset: str | None) -> str:
    owner = getattr(tool, "function", type(tool))
    place = f" in tool set {toolset!r}" if toolset else ""
    return f"{tool.name!r} ({owner.__module__}.{owner.__qualname__}{place})"


def _bad_layers(roles: Roles) -> Iterator[str]:
    for layer in roles.layers:
        if not isinstance(layer, ILayer):
            yield f"The role layers holds {type(layer).__name__}, which is no ILayer"
