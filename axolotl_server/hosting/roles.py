"""The roles of a user's container: providers that the framework finds by name."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from dependency_injector import containers, providers
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from axolotl_core.errors import ConfigurationError
from axolotl_core.extension import IExtension, check_extension
from axolotl_core.features.attributes import place_of
from axolotl_core.health import IHealthCheck, check_health_checks
from axolotl_core.layers import ILayer
from axolotl_core.names import DefaultNameRule, INameRule, check_name, did_you_mean, is_within_toolset
from axolotl_core.policies.access import IAuthorizer, ITokenVerifier
from axolotl_core.policies.audit import IAuditSink
from axolotl_core.policies.quota import IQuotaStore
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_core.prompts import check_prompt
from axolotl_core.registry import (
    AnyPrompt,
    AnyResource,
    AnyTool,
    PromptRegistry,
    Registry,
    ResourceRegistry,
    ToolRegistry,
)
from axolotl_core.resources.resource import check_resource
from axolotl_core.schema import explain_type_error
from axolotl_core.sessions import IEventStore
from axolotl_core.task_engine import ITaskEngine
from axolotl_core.tools.tool import check_definition
from axolotl_server.hosting.role_mistakes import (
    misspelled_roles,
    provider_failure,
    roles_without_provider,
    undefined_dependencies,
)


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


if TYPE_CHECKING:
    from axolotl_server.skills.published_skill import PublishedSkill

RoleT = TypeVar("RoleT")
ItemT = TypeVar("ItemT")

_FEATURES = {"tools": "tool_registry", "prompts": "prompt_registry", "resources": "resource_registry", "skills": None}
"""The roles of features, each with the role of the registry that they are served from, if there is one."""


class FeatureSet(msgspec.Struct, frozen=True):
    """Features of one kind that are served together; the name is None outside of any set."""

    name: str | None
    items: tuple[Any, ...]


class Roles(msgspec.Struct, frozen=True):
    """The objects that a user's container provides."""

    toolsets: tuple[FeatureSet, ...] = ()
    promptsets: tuple[FeatureSet, ...] = ()
    resourcesets: tuple[FeatureSet, ...] = ()
    """Resources and templates, and the files of skills."""
    skillsets: tuple[FeatureSet, ...] = ()
    skill_faults: tuple[str, ...] = ()
    """What is wrong with the skills that could not be read."""
    layers: tuple[ILayer, ...] = ()
    extensions: tuple[IExtension, ...] = ()
    registry: ToolRegistry = msgspec.field(default_factory=ToolRegistry)
    """The tools that are served: those that the container registered, and those of the tool sets."""
    prompt_registry: PromptRegistry = msgspec.field(default_factory=PromptRegistry)
    resource_registry: ResourceRegistry = msgspec.field(default_factory=ResourceRegistry)
    name_rule: INameRule = msgspec.field(default_factory=DefaultNameRule)
    event_store: IEventStore | None = None
    authorizer: IAuthorizer | None = None
    token_verifier: ITokenVerifier | None = None
    audit_sinks: tuple[IAuditSink, ...] = ()
    quota_store: IQuotaStore | None = None
    result_store: IResultStore | None = None
    task_engine: ITaskEngine | None = None
    health_checks: tuple[IHealthCheck, ...] = ()
    offers: frozenset[str] = frozenset({"tools"})
    """The kinds of features that the server has, now or later."""

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """All tools, in their order."""
        return _items(self.toolsets)

    @property
    def prompts(self) -> tuple[AnyPrompt, ...]:
        """All prompts, in their order."""
        return _items(self.promptsets)

    @property
    def resources(self) -> tuple[AnyResource, ...]:
        """All resources and templates, in their order."""
        return _items(self.resourcesets)

    @property
    def skills(self) -> "tuple[PublishedSkill, ...]":
        """All skills, in their order."""
        return _items(self.skillsets)

    @property
    def set_names(self) -> dict[int, str]:
        """The names of the tool sets, by the identity of each feature in them."""
        sets = (*self.toolsets, *self.promptsets, *self.resourcesets, *self.skillsets)
        return {id(item): one.name for one in sets if one.name is not None for item in one.items}


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


async def resolve_roles(container: containers.Container, chosen: Sequence[str] = ()) -> Roles:
    """Make and check the objects of all roles; a ConfigurationError lists everything that is wrong."""
    roles = await make_roles(container, chosen)
    findings = faults_of(roles)
    if findings:
        raise ConfigurationError(*findings)
    return roles


async def make_roles(container: containers.Container, chosen: Sequence[str] = ()) -> Roles:
    """Make the objects of all roles, or raise ConfigurationError; without `chosen`, all tool sets are served."""
    offers = frozenset(_offers(container))
    findings = [
        *undefined_dependencies(container),
        *_unknown_toolsets(container, chosen),
        *roles_without_provider(container),
        *(misspelled_roles(container) if not offers else ()),
    ]
    if not offers and "extensions" not in container.providers and not findings:
        findings.append(
            "The container has no role tools, prompts, resources or skills: write "
            "tools = providers.List(providers.Singleton(MyTool)), or give it sub-containers that have one"
        )
    if findings:
        raise ConfigurationError(*findings)
    tools = await _optional(container, "tool_registry", ToolRegistry, ToolRegistry)
    prompts = await _optional(container, "prompt_registry", PromptRegistry, PromptRegistry)
    resources = await _optional(container, "resource_registry", ResourceRegistry, ResourceRegistry)
    skillsets, filesets, skill_faults = await _skillsets(container, chosen) if "skills" in offers else ([], [], [])
    return Roles(
        toolsets=await _sets(container, "tools", tools, chosen),
        promptsets=await _sets(container, "prompts", prompts, chosen),
        resourcesets=(*await _sets(container, "resources", resources, chosen), *filesets),
        skillsets=tuple(skillsets),
        skill_faults=tuple(skill_faults),
        layers=await _all_of(container, "layers"),
        extensions=await _all_of(container, "extensions"),
        registry=tools,
        prompt_registry=prompts,
        resource_registry=resources,
        name_rule=await _optional(container, "name_rule", INameRule, DefaultNameRule),
        event_store=await _optional(container, "event_store", IEventStore, lambda: None),
        authorizer=await _optional(container, "authorizer", IAuthorizer, lambda: None),
        token_verifier=await _optional(container, "token_verifier", ITokenVerifier, lambda: None),
        quota_store=await _optional(container, "quota_store", IQuotaStore, lambda: None),
        result_store=await _optional(container, "result_store", IResultStore, lambda: None),
        task_engine=await _optional(container, "task_engine", ITaskEngine, lambda: None),
        audit_sinks=await _all_of(container, "audit_sinks"),
        health_checks=await _all_of(container, "health_checks"),
        offers=offers,
    )


def faults_of(roles: Roles) -> list[str]:
    """Find objects of the wrong type, and names that break a rule or collide."""
    return [
        *_faults(roles.tools, partial(_check_tool, rule=roles.name_rule)),
        *_faults(roles.prompts, check_prompt),
        *_faults(roles.resources, check_resource),
        *roles.skill_faults,
        *_faults(roles.extensions, check_extension),
        *_collisions(roles.toolsets, roles.registry, "tool"),
        *_collisions(roles.promptsets, roles.prompt_registry, "prompt"),
        *_collisions(roles.resourcesets, roles.resource_registry, "resource"),
        *_bad_layers(roles),
        *_faults([roles.health_checks], check_health_checks),
    ]


def toolset_names(container: containers.Container) -> list[str]:
    """Return the names of the tool sets of a container."""
    return [name for name, _ in sources_of(container, "tools") if name is not None]


def _items(sets: Sequence[FeatureSet]) -> tuple[Any, ...]:
    return tuple(item for one in sets for item in one.items)


def _offers(container: Any) -> Iterator[str]:
    for role, registry in _FEATURES.items():
        if registry in container.providers or any(sources_of(container, role)):
            yield role
            if role == "skills":
                yield "resources"  # which clients read the files as


async def _sets(container: Any, role: str, registry: Registry[Any], chosen: Sequence[str]) -> tuple[FeatureSet, ...]:
    """Make the features of a role: those that the registry already holds, and each chosen set."""
    sources = [(name, source) for name, source in sources_of(container, role) if _is_chosen(name, chosen)]
    made = [FeatureSet(name, tuple(flat(await resolved(source)))) for name, source in sources]
    return (FeatureSet(None, registry.get_all()), *made)


async def _skillsets(container: Any, chosen: Sequence[str]) -> tuple[list[FeatureSet], list[FeatureSet], list[str]]:
    """Read the skills of each chosen set; give them, their files, and what is wrong with those that cannot be read."""
    from axolotl_server.skills.assembly import read_skills  # few servers have skills

    skillsets, filesets, faults = [], [], []
    for name, source in sources_of(container, "skills"):
        if _is_chosen(name, chosen):
            skills, found = await read_skills(flat(await resolved(source)))
            files = {id(file): file for skill in skills for file in skill.resources}  # some belong to several skills
            skillsets.append(FeatureSet(name, tuple(skills)))
            filesets.append(FeatureSet(name, tuple(files.values())))
            faults += found
    return skillsets, filesets, faults


def _is_chosen(toolset: str | None, chosen: Sequence[str]) -> bool:
    """Tell whether a tool set is chosen, or inside of a chosen one; features outside of any set always are."""
    return not chosen or toolset is None or is_within_toolset(toolset, chosen)


async def _all_of(container: Any, role: str) -> tuple[Any, ...]:
    provider = container.providers.get(role)
    return () if provider is None else tuple(flat(await resolved(provider)))


async def _optional(container: Any, role: str, port: Any, default: Callable[[], RoleT]) -> RoleT:
    """Make the object of an optional role."""
    provider = container.providers.get(role)
    if provider is None:
        return default()
    value: RoleT = await resolved(provider)
    if not isinstance(value, port):
        raise ConfigurationError(f"The role {role} returned {type(value).__name__}; expected {port.__name__}")
    return value


def _unknown_toolsets(container: containers.Container, chosen: Sequence[str]) -> Iterator[str]:
    known = [*dict.fromkeys(name for role in _FEATURES for name, _ in sources_of(container, role) if name)]
    for name in chosen:
        if not any(is_within_toolset(toolset, (name,)) for toolset in known):
            hint = did_you_mean(name, known, f"; available: {', '.join(known) or 'none'}")
            yield f"There is no tool set {name!r}{hint}"


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
                yield f"Two {kind}s have the same name: {first} and {second}"
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


def _bad_layers(roles: Roles) -> Iterator[str]:
    for layer in roles.layers:
        if not isinstance(layer, ILayer):
            yield f"The role layers contains {type(layer).__name__}, which is not an ILayer"
    for sink in roles.audit_sinks:
        if not isinstance(sink, IAuditSink):
            yield f"The role audit_sinks contains {type(sink).__name__}, which is not an IAuditSink"
