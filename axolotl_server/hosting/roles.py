"""The roles of a user's container: providers that the framework finds by name."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from axolotl_core.health import IHealthCheck
from axolotl_core.layers import ILayer, Layer
from axolotl_core.names import DefaultNameRule, INameRule
from axolotl_core.policies.access import IAuthorizer, ITokenVerifier
from axolotl_core.policies.audit import IAuditSink
from axolotl_core.policies.quota import IQuotaStore
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_core.registry import (
    AnyPrompt,
    AnyResource,
    AnyTool,
    PromptRegistry,
    Registry,
    ResourceRegistry,
    ToolRegistry,
)
from axolotl_core.sessions import IEventStore
from axolotl_server.bundled import BUNDLED
from axolotl_server.extension import Extension, FeatureSet
from axolotl_server.protocol.subscriptions import Listable


class Role(NamedTuple):
    """What a role contains, and how it is written."""

    example: str
    port: Any = None
    """The type of its object, or of each object in a list; None for features and settings."""
    is_list: bool = False


FEATURES: Final = ("tools", "prompts", "resources", *(role for one in BUNDLED if one.offers for role in one.roles))
ROLES: Final[Mapping[str, Role]] = {
    **{name: Role(f"providers.List(providers.Singleton(My{name[:-1].title()}))") for name in FEATURES[:3]},
    **{name: Role(written) for one in BUNDLED for name, written in one.roles.items()},
    "settings": Role('providers.Object({"limits": {"timeout_seconds": 10}})'),
    "tool_registry": Role("providers.Singleton(ToolRegistry)", ToolRegistry),
    "prompt_registry": Role("providers.Singleton(PromptRegistry)", PromptRegistry),
    "resource_registry": Role("providers.Singleton(ResourceRegistry)", ResourceRegistry),
    "layers": Role("providers.List(providers.Singleton(MyLayer))", ILayer, is_list=True),
    "extensions": Role("providers.List(providers.Singleton(MyExtension))", Extension, is_list=True),
    "name_rule": Role("providers.Singleton(MyNameRule)", INameRule),
    "event_store": Role("providers.Singleton(MyEventStore)", IEventStore),
    "authorizer": Role("providers.Singleton(MyAuthorizer)", IAuthorizer),
    "token_verifier": Role("providers.Singleton(MyVerifier)", ITokenVerifier),
    "quota_store": Role("providers.Singleton(MyQuotaStore)", IQuotaStore),
    "result_store": Role("providers.Singleton(MyResultStore)", IResultStore),
    "audit_sinks": Role("providers.List(providers.Singleton(MySink))", IAuditSink, is_list=True),
    "health_checks": Role("providers.List(providers.Singleton(MyCheck))", IHealthCheck, is_list=True),
}
"""All roles. Those with a port are members of `Roles`."""


class Roles(msgspec.Struct, frozen=True):
    """The objects that a user's container provides."""

    sets: Mapping[str, Sequence[FeatureSet]] = {}
    """All features by kind, those of extensions included; templates count as resources."""
    layers: tuple[Layer, ...] = ()
    bundled: tuple[Extension, ...] = ()
    """The extensions that come with the server, as far as this one uses them."""
    extensions: tuple[Extension, ...] = ()
    tool_registry: ToolRegistry = msgspec.field(default_factory=ToolRegistry)
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
    health_checks: tuple[IHealthCheck, ...] = ()
    known_sets: tuple[str, ...] = ()
    """The names of all tool sets, also of those that are not served."""
    offers: frozenset[str] = frozenset({"tools"})
    """The kinds of features that the server has, now or later."""

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """All tools, in their order."""
        return self._items("tools")

    @property
    def prompts(self) -> tuple[AnyPrompt, ...]:
        """All prompts, in their order."""
        return self._items("prompts")

    @property
    def resources(self) -> tuple[AnyResource, ...]:
        """All resources and templates, in their order."""
        return self._items("resources")

    @property
    def set_names(self) -> dict[int, str]:
        """The names of the tool sets, by the identity of each feature in them."""
        sets = chain.from_iterable(self.sets.values())
        return {id(item): one.name for one in sets if one.name is not None for item in one.items}

    @property
    def registries(self) -> dict[Listable, Registry[Any]]:
        """The registries, by the kind of their features."""
        return {"tools": self.tool_registry, "prompts": self.prompt_registry, "resources": self.resource_registry}

    def _items(self, kind: str) -> tuple[Any, ...]:
        return tuple(item for one in self.sets.get(kind, ()) for item in one.items)
