"""The composition root: the framework's own objects around the roles of a user's container."""

from collections.abc import Sequence

from dependency_injector import containers, providers

from axolotl_core.layer import ILayer
from axolotl_core.name_rule import DefaultNameRule, INameRule
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from axolotl_core.registry import AnyTool, ToolRegistry
from axolotl_server.binding import Binder
from axolotl_server.catalogue import Catalogue
from axolotl_server.deadlines import DeadlineTable
from axolotl_server.eras.legacy import LegacyEra
from axolotl_server.eras.modern import ModernEra
from axolotl_server.eras.select import Eras
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.handler import DefaultHandler
from axolotl_server.inflight import InFlight
from axolotl_server.layers.defaults import default_layers
from axolotl_server.methods.lifecycle import Discovery, Handshake, identity_of, ping
from axolotl_server.methods.tools import ToolMethods
from axolotl_server.settings import ServerSettings

__all__ = ["ServerContainer"]


def _registry(registry: ToolRegistry, tools: Sequence[AnyTool]) -> ToolRegistry:
    registry.register_range(tools)
    return registry


def _layers(deadlines: DeadlineTable, user_layers: Sequence[ILayer]) -> tuple[ILayer, ...]:
    return default_layers(deadlines.lane, user_layers)


def _inflight(settings: ServerSettings) -> InFlight:
    return InFlight(settings.limits.max_inflight, settings.http.watch_after_seconds)


def _threads(settings: ServerSettings) -> ThreadRunner:
    return ThreadRunner(settings.limits.threads)


def _eras(settings: ServerSettings, catalogue: Catalogue, inflight: InFlight) -> Eras:
    """Give each generation its table of methods."""
    tools = ToolMethods(catalogue, inflight, settings.protocol.invalid_arguments)
    handshake = Handshake(settings.server)
    shared = {"tools/list": tools.list, "tools/call": tools.call}
    legacy = {"initialize": handshake.initialize, "ping": ping, **shared}
    modern = {"server/discover": Discovery(settings.server).discover, **shared}
    identity = identity_of(settings.server)
    eras = Eras(
        [
            *(LegacyEra(revision, legacy, settings.protocol) for revision in HANDSHAKE_REVISIONS),
            *(ModernEra(revision, modern, settings.protocol, identity) for revision in STATELESS_REVISIONS),
        ]
    )
    handshake.eras = eras
    return eras


class ServerContainer(containers.DeclarativeContainer):
    """What a server is made of; each provider can be overridden in a test."""

    settings: providers.Dependency[ServerSettings] = providers.Dependency(instance_of=ServerSettings)
    tools: providers.Dependency[Sequence[AnyTool]] = providers.Dependency()
    user_layers: providers.Dependency[Sequence[ILayer]] = providers.Dependency(default=())
    user_registry: providers.Dependency[ToolRegistry] = providers.Dependency(default=providers.Factory(ToolRegistry))
    name_rule: providers.Dependency[INameRule] = providers.Dependency(default=providers.Factory(DefaultNameRule))

    deadlines = providers.Singleton(DeadlineTable)
    threads = providers.Singleton(_threads, settings)
    inflight = providers.Singleton(_inflight, settings)
    registry = providers.Singleton(_registry, user_registry, tools)
    layers = providers.Singleton(_layers, deadlines, user_layers)
    binder = providers.Singleton(Binder, settings, layers, threads)
    catalogue = providers.Singleton(Catalogue, registry, binder, settings, name_rule)
    eras = providers.Singleton(_eras, settings, catalogue, inflight)
    handler = providers.Singleton(DefaultHandler, eras, inflight)
