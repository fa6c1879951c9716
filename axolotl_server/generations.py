"""All generations of the protocol with their tables of methods."""

from collections.abc import Iterator
from typing import Any

from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from axolotl_core.resource import CacheHint
from axolotl_server.binding import Binder
from axolotl_server.capabilities import capabilities_of
from axolotl_server.catalogues.prompts import PromptCatalogue
from axolotl_server.catalogues.resources import ResourceCatalogue, TemplateCatalogue
from axolotl_server.catalogues.tools import ToolCatalogue
from axolotl_server.deadlines import DeadlineTable
from axolotl_server.eras.asking import AskingByRequest, AskingInRounds
from axolotl_server.eras.base import Method
from axolotl_server.eras.legacy import LegacyEra
from axolotl_server.eras.modern import ModernEra
from axolotl_server.eras.select import Eras
from axolotl_server.inflight import InFlight
from axolotl_server.methods.completion import CompletionMethods
from axolotl_server.methods.extensions import ExtensionMethods
from axolotl_server.methods.lifecycle import Discovery, Handshake, identity_of, ping
from axolotl_server.methods.logging import set_level
from axolotl_server.methods.prompts import PromptMethods
from axolotl_server.methods.resources import ResourceMethods
from axolotl_server.methods.subscriptions import SubscriptionMethods
from axolotl_server.methods.tools import ToolMethods
from axolotl_server.roles import Roles
from axolotl_server.sealing import StateSealer
from axolotl_server.settings import ServerSettings
from axolotl_server.subscriptions import Subscriptions

__all__ = ["generations"]


def generations(
    *,
    settings: ServerSettings,
    roles: Roles,
    tools: ToolCatalogue,
    prompts: PromptCatalogue,
    resources: ResourceCatalogue,
    templates: TemplateCatalogue,
    binder: Binder,
    inflight: InFlight,
    subscriptions: Subscriptions,
    deadlines: DeadlineTable,
    sealer: StateSealer,
) -> Eras:
    """Give each generation the methods that it has, as far as the server offers what they are about."""
    capabilities = capabilities_of(roles.offers, roles.extensions, roles.tools)
    tool_methods = ToolMethods(tools, inflight, settings.protocol.invalid_arguments)
    prompt_methods = PromptMethods(prompts, inflight)
    resource_methods = ResourceMethods(resources, templates, inflight, settings.subscriptions.maximum_resources)
    completion = CompletionMethods(prompts, templates, inflight)
    listening = SubscriptionMethods(subscriptions, capabilities, settings.subscriptions.maximum_resources)
    handshake = Handshake(settings.server, capabilities)
    discovery = Discovery(settings.server, capabilities)
    shared = {
        "tools/list": tool_methods.list,
        "tools/call": tool_methods.call,
        "prompts/list": prompt_methods.list,
        "prompts/get": prompt_methods.call,
        "resources/list": resource_methods.list,
        "resources/templates/list": resource_methods.list_templates,
        "resources/read": resource_methods.call,
        "completion/complete": completion.call,
    }
    watching = {
        "resources/subscribe": resource_methods.subscribe,
        "resources/unsubscribe": resource_methods.unsubscribe,
    }
    offered = dict(_offered({**shared, **watching}, capabilities))
    added = ExtensionMethods(roles.extensions, binder, inflight)
    offered.update((name, added.call) for name in added.names)
    legacy = {**offered, "initialize": handshake.initialize, "ping": ping, "logging/setLevel": set_level}
    modern = {name: method for name, method in offered.items() if name not in watching}
    modern |= {"server/discover": discovery.discover, "subscriptions/listen": listening.listen}
    by_request = AskingByRequest(deadlines, settings.limits.ask_timeout_seconds)
    in_rounds = AskingInRounds(sealer)
    identity = identity_of(settings.server)
    hint = CacheHint(settings.caching.list_ttl_seconds, settings.caching.scope)
    eras = Eras(
        [
            *(LegacyEra(one, legacy, settings.protocol, by_request) for one in HANDSHAKE_REVISIONS),
            *(
                ModernEra(one, modern, settings.protocol, in_rounds, identity=identity, list_hint=hint)
                for one in STATELESS_REVISIONS
            ),
        ]
    )
    handshake.eras = eras
    return eras


def _offered(methods: dict[str, Method], capabilities: dict[str, Any]) -> Iterator[tuple[str, Method]]:
    """Leave out the methods of what the server does not have."""
    for name, method in methods.items():
        kind = name.partition("/")[0]
        if ("completions" if kind == "completion" else kind) in capabilities:
            yield name, method
