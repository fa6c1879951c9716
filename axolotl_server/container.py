"""The composition root: the framework's own objects around the roles of a user's container."""

from dependency_injector import containers, providers

from axolotl_core.layer import ILayer
from axolotl_core.registry import PromptRegistry, ResourceRegistry, ToolRegistry
from axolotl_server.binding import Binder
from axolotl_server.catalogues.prompts import PromptCatalogue
from axolotl_server.catalogues.resources import ResourceCatalogue, TemplateCatalogue
from axolotl_server.catalogues.tools import ToolCatalogue
from axolotl_server.deadlines import DeadlineTable
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.generations import Parts, generations
from axolotl_server.handler import DefaultHandler
from axolotl_server.inflight import InFlight
from axolotl_server.layers.defaults import default_layers
from axolotl_server.roles import Roles
from axolotl_server.sealing import StateSealer
from axolotl_server.settings import ServerSettings
from axolotl_server.subscriptions import Subscriptions
from axolotl_server.tasks.store import TaskStore

__all__ = ["ServerContainer"]


def _registry(roles: Roles) -> ToolRegistry:
    roles.registry.register_range(roles.tools)
    return roles.registry


def _prompt_registry(roles: Roles) -> PromptRegistry:
    roles.prompt_registry.register_range(roles.prompts)
    return roles.prompt_registry


def _resource_registry(roles: Roles) -> ResourceRegistry:
    roles.resource_registry.register_range(roles.resources)
    return roles.resource_registry


def _layers(deadlines: DeadlineTable, roles: Roles) -> tuple[ILayer, ...]:
    return default_layers(deadlines.lane, roles.layers)


def _inflight(settings: ServerSettings) -> InFlight:
    return InFlight(settings.limits.max_inflight, settings.http.watch_after_seconds)


def _threads(settings: ServerSettings) -> ThreadRunner:
    return ThreadRunner(settings.limits.threads)


def _sealer(settings: ServerSettings) -> StateSealer:
    keys = [key.get_secret_value() for key in settings.protocol.state_keys]
    return StateSealer(keys, settings.protocol.state_ttl_seconds)


def _tasks(settings: ServerSettings) -> TaskStore:
    return TaskStore(settings.tasks)


def _subscriptions(settings: ServerSettings) -> Subscriptions:
    return Subscriptions(settings.subscriptions.maximum)


class ServerContainer(containers.DeclarativeContainer):
    """What a server is made of; each provider can be overridden in a test."""

    settings: providers.Dependency[ServerSettings] = providers.Dependency(instance_of=ServerSettings)
    roles: providers.Dependency[Roles] = providers.Dependency(instance_of=Roles)

    deadlines = providers.Singleton(DeadlineTable)
    threads = providers.Singleton(_threads, settings)
    inflight = providers.Singleton(_inflight, settings)
    subscriptions = providers.Singleton(_subscriptions, settings)
    sealer = providers.Singleton(_sealer, settings)
    tasks = providers.Singleton(_tasks, settings)
    layers = providers.Singleton(_layers, deadlines, roles)
    binder = providers.Singleton(Binder, settings, layers, threads)

    registry = providers.Singleton(_registry, roles)
    prompt_registry = providers.Singleton(_prompt_registry, roles)
    resource_registry = providers.Singleton(_resource_registry, roles)
    tools = providers.Singleton(ToolCatalogue, registry, binder, settings, roles.provided.name_rule)
    prompts = providers.Singleton(PromptCatalogue, prompt_registry, binder, settings)
    resources = providers.Singleton(ResourceCatalogue, resource_registry, binder, settings)
    templates = providers.Singleton(TemplateCatalogue, resource_registry, binder, settings)

    parts = providers.Singleton(
        Parts,
        settings=settings,
        roles=roles,
        tools=tools,
        prompts=prompts,
        resources=resources,
        templates=templates,
        binder=binder,
        inflight=inflight,
        subscriptions=subscriptions,
        deadlines=deadlines,
        sealer=sealer,
        tasks=tasks,
    )
    eras = providers.Singleton(generations, parts)
    handler = providers.Singleton(DefaultHandler, eras, inflight, subscriptions)
