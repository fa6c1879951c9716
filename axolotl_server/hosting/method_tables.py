"""All generations of the protocol with their tables of methods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from axolotl_core.resources.resource import CacheHint
from axolotl_server.calls.binding import Binder
from axolotl_server.calls.feature_method import FeatureMethod, InFlight
from axolotl_server.eras.era import Eras, Method, Methods
from axolotl_server.eras.handshake import HandshakeEra
from axolotl_server.eras.stateless import StatelessEra
from axolotl_server.features.prompts import PromptCatalogue
from axolotl_server.features.resources import ResourceCatalogue, ResourceMethods, TemplateCatalogue
from axolotl_server.features.tools import ToolCatalogue, ToolMethods
from axolotl_server.hosting.roles import Roles
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.methods.extensions import ExtensionMethods
from axolotl_server.methods.lifecycle import (
    Discovery,
    Handshake,
    capabilities_of,
    identity_of,
    ping,
    runs_tasks,
    set_level,
)
from axolotl_server.methods.subscriptions import SubscriptionMethods, Subscriptions
from axolotl_server.questions.asking import AskingByRequest, AskingInRounds
from axolotl_server.questions.sealing import StateSealer
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.authorization.guard import Guard, ResourceWatch
    from axolotl_server.console.console import Console
    from axolotl_server.observation.observation import Observation
    from axolotl_server.tasks.directed_tasks import DirectedTasks
    from axolotl_server.tasks.task import TaskStore


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodParts:
    """What the methods are made of."""

    settings: ServerSettings
    roles: Roles
    tools: ToolCatalogue
    prompts: PromptCatalogue
    resources: ResourceCatalogue
    templates: TemplateCatalogue
    tool_methods: ToolMethods
    resource_methods: ResourceMethods
    feature_methods: Mapping[str, FeatureMethod]
    binder: Binder
    inflight: InFlight
    subscriptions: Subscriptions
    deadlines: DeadlineTable
    sealer: StateSealer
    tasks: "TaskStore"
    guard: "Guard | None"
    watch: "ResourceWatch | None"
    console: "Console | None" = None
    observation: "Observation | None" = None

    def protect(self, methods: Methods) -> Methods:
        """Put the guard in front of methods, where there is one; a console sees what the guard refuses too."""
        guarded = methods if self.guard is None else self.guard.protect(methods)
        guarded = guarded if self.console is None else self.console.observer.observe(guarded)
        return guarded if self.observation is None else self.observation.observe(guarded, self.feature_methods)


def make_eras(parts: MethodParts) -> Eras:
    """Give each generation the methods that it has, as far as the server offers what they are about."""
    settings, roles = parts.settings, parts.roles
    capabilities = capabilities_of(roles.offers, roles.extensions, roles.tools)
    shared = _shared(parts, capabilities)
    handshake = Handshake(settings.server, capabilities)
    legacy = {**shared, "initialize": handshake.initialize, "ping": ping, "logging/setLevel": set_level}
    tasked, directed = _tasks(parts) if runs_tasks(roles.tools) else ({}, None)
    modern = _modern(parts, shared, capabilities, directed)
    by_request = AskingByRequest(parts.deadlines, settings.limits.ask_timeout_seconds)
    in_rounds = AskingInRounds(parts.sealer)
    identity = identity_of(settings.server)
    hint = CacheHint(settings.caching.list_ttl_seconds, settings.caching.scope)
    eras = Eras(
        [
            *(
                HandshakeEra(
                    one, parts.protect({**legacy, **tasked} if one.tasks else legacy), settings.protocol, by_request
                )
                for one in HANDSHAKE_REVISIONS
            ),
            *(
                StatelessEra(
                    one, parts.protect(modern), settings.protocol, in_rounds, identity=identity, list_hint=hint
                )
                for one in STATELESS_REVISIONS
            ),
        ]
    )
    handshake.eras = eras
    if parts.observation is not None:
        parts.observation.observe_admission(eras.all)
    return eras


def _tasks(parts: MethodParts) -> "tuple[Methods, DirectedTasks]":
    """Make what runs tasks, in the way of the revision that has them and in that of the extension."""
    from axolotl_server.tasks.directed_tasks import DirectedTasks  # few servers have tasks
    from axolotl_server.tasks.requested_tasks import RequestedTasks

    tools, settings = parts.tool_methods, parts.settings.tasks
    requested = RequestedTasks(tools, parts.tasks, settings)
    deadlines, subscriptions = parts.deadlines, parts.subscriptions
    directed = DirectedTasks(tools, parts.tasks, settings, deadlines=deadlines, subscriptions=subscriptions)
    return requested.methods, directed


def _shared(parts: MethodParts, capabilities: Mapping[str, Any]) -> dict[str, Method]:
    """Make the methods that revisions with a handshake have in common; most of them the stateless one has too."""
    methods: dict[str, Method] = {
        **{name: one.call for name, one in parts.feature_methods.items()},
        "tools/list": parts.tools.list,
        "prompts/list": parts.prompts.list,
        "resources/list": parts.resources.list,
        "resources/templates/list": parts.templates.list,
        "resources/subscribe": parts.resource_methods.subscribe,
        "resources/unsubscribe": parts.resource_methods.unsubscribe,
    }
    added = ExtensionMethods(parts.roles.extensions, parts.binder, parts.inflight)
    return {**dict(_offered(methods, capabilities)), **dict.fromkeys(added.names, added.call)}


def _modern(
    parts: MethodParts, shared: Methods, capabilities: Mapping[str, Any], tasks: "DirectedTasks | None"
) -> dict[str, Method]:
    maximum = parts.settings.subscriptions.maximum_resources
    watched = ("resources/subscribe", "resources/unsubscribe")
    modern = {name: method for name, method in shared.items() if name not in watched}
    modern["server/discover"] = Discovery(parts.settings.server, capabilities).discover
    modern["subscriptions/listen"] = SubscriptionMethods(
        parts.subscriptions, capabilities, maximum, tasks, None if parts.watch is None else parts.watch.hearable
    ).listen
    return modern if tasks is None else {**modern, **tasks.methods}


def _offered(methods: Mapping[str, Method], capabilities: Mapping[str, Any]) -> Iterator[tuple[str, Method]]:
    """Leave out the methods of what the server does not have."""
    for name, method in methods.items():
        kind = name.partition("/")[0]
        if ("completions" if kind == "completion" else kind) in capabilities:
            yield name, method
