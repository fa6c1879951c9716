"""The composition root: the framework's own objects around the roles of a user's container."""

from typing import TYPE_CHECKING, Any

from dependency_injector import containers, providers

from axolotl_core.layers import ILayer, run_in_place
from axolotl_core.policies.quota import IQuotaStore
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_core.registry import PromptRegistry, ResourceRegistry, ToolRegistry
from axolotl_server.calls.binding import Binder, Runners
from axolotl_server.calls.feature_method import FeatureMethod, InFlight
from axolotl_server.eras.era import Eras
from axolotl_server.execution.processes import ProcessRunner
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.completion import CompletionMethods
from axolotl_server.features.prompts import PromptCatalogue, PromptMethods
from axolotl_server.features.resources import ResourceCatalogue, ResourceMethods, TemplateCatalogue
from axolotl_server.features.tools import ToolCatalogue, ToolMethods
from axolotl_server.handler import DefaultHandler
from axolotl_server.hosting.layer_stack import Policies, default_layers, optional_layers
from axolotl_server.hosting.method_tables import MethodParts, make_eras
from axolotl_server.hosting.roles import Roles
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.methods.subscriptions import Subscriptions
from axolotl_server.questions.sealing import StateSealer
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.audit.assembly import Audit
    from axolotl_server.authorization.authorization import Authorization
    from axolotl_server.authorization.guard import Guard, ResourceWatch
    from axolotl_server.console.console import Console
    from axolotl_server.observation.observation import Observation
    from axolotl_server.tasks.task import TaskStore

# What few servers have is loaded by those that have it: every module costs time at the start.


def _registry(roles: Roles) -> ToolRegistry:
    roles.registry.register_range(roles.tools)
    return roles.registry


def _prompt_registry(roles: Roles) -> PromptRegistry:
    roles.prompt_registry.register_range(roles.prompts)
    return roles.prompt_registry


def _resource_registry(roles: Roles) -> ResourceRegistry:
    roles.resource_registry.register_range(roles.resources)
    return roles.resource_registry


def _toolsets(roles: Roles) -> dict[int, str]:
    return roles.set_names


def _processes(settings: ServerSettings) -> ProcessRunner:
    return ProcessRunner(settings.limits.processes, settings.limits.max_process_bytes)


def _runners(threads: ThreadRunner, processes: ProcessRunner) -> Runners:
    return {"loop": run_in_place, "thread": threads.runner, "process": processes.runner}


def _audit(settings: ServerSettings, roles: Roles) -> "Audit | None":
    if not settings.audit.enabled and not roles.audit_sinks:
        return None
    from axolotl_server.audit.assembly import make_audit

    return make_audit(settings.audit, roles.audit_sinks)


def _authorization(settings: ServerSettings, roles: Roles) -> "Authorization | None":
    has_tokens = settings.auth.is_used or roles.token_verifier is not None
    if roles.authorizer is None and not has_tokens and not settings.authorization.enforced:
        return None
    from axolotl_server.authorization.authorization import authorization_of

    return authorization_of(settings.authorization, roles.authorizer, has_tokens=has_tokens)


def _quota_store(settings: ServerSettings, roles: Roles) -> IQuotaStore | None:
    if not settings.quotas.rules:
        return None
    from axolotl_server.quotas import quota_store

    return quota_store(settings.quotas, roles.quota_store)


def _result_store(settings: ServerSettings, roles: Roles) -> IResultStore:
    from axolotl_server.hosting.result_store import result_store

    return result_store(settings.idempotency, roles.result_store)


def _console(settings: ServerSettings) -> "Console | None":
    if not settings.console.enabled:
        return None
    from axolotl_server.console.console import make_console  # a server in production has none

    return make_console(settings)


def _observation(settings: ServerSettings) -> "Observation | None":
    telemetry, metrics, log = settings.telemetry, settings.metrics, settings.log
    if not (telemetry.traces or telemetry.metrics or metrics.enabled or log.format == "json"):
        return None
    from axolotl_server.observation.observation import make_observation  # most servers are not observed

    return make_observation(settings)


def _records(observation: "Observation | None", audit: "Audit | None") -> tuple[ILayer, ...]:
    """Put together what stands outside of everything: who observes sees also what the audit refuses."""
    return (*(observation.layers if observation is not None else ()), *(() if audit is None else (audit.layer,)))


def _handler(
    eras: Eras, inflight: InFlight, subscriptions: Subscriptions, observation: "Observation | None"
) -> DefaultHandler:
    if observation is None or observation.observer is None:
        return DefaultHandler(eras, inflight, subscriptions)
    from axolotl_server.observation.observer import ObservedHandler

    return ObservedHandler(eras, inflight, subscriptions, numbers=observation.numbers)


def _layers(
    deadlines: DeadlineTable, roles: Roles, settings: ServerSettings, policies: Policies, console: "Console | None"
) -> tuple[ILayer, ...]:
    layers = default_layers(deadlines, roles.layers, optional_layers(settings, policies))
    return layers if console is None else (console.observer, *layers)


def _inflight(settings: ServerSettings) -> InFlight:
    return InFlight(
        settings.limits.max_inflight, settings.http.watch_after_seconds, settings.limits.cancel_grace_seconds
    )


def _threads(settings: ServerSettings, inflight: InFlight) -> ThreadRunner:
    return ThreadRunner(settings.limits.threads, inflight.zombies)


def _sealer(settings: ServerSettings) -> StateSealer:
    keys = [key.get_secret_value() for key in settings.protocol.state_keys]
    return StateSealer(keys, settings.protocol.state_ttl_seconds)


def _tasks(settings: ServerSettings) -> "TaskStore":
    from axolotl_server.tasks.task import TaskStore

    return TaskStore(settings.tasks)


def _tool_methods(tools: ToolCatalogue, inflight: InFlight, settings: ServerSettings) -> ToolMethods:
    return ToolMethods(tools, inflight, settings.protocol.invalid_arguments)


def _resource_methods(
    resources: ResourceCatalogue, templates: TemplateCatalogue, inflight: InFlight, settings: ServerSettings
) -> ResourceMethods:
    return ResourceMethods(resources, templates, inflight, settings.subscriptions.maximum_resources)


def _feature_methods(
    tools: ToolMethods, prompts: PromptMethods, resources: ResourceMethods, completion: CompletionMethods
) -> dict[str, FeatureMethod]:
    return {
        "tools/call": tools,
        "prompts/get": prompts,
        "resources/read": resources,
        "resources/subscribe": resources,
        "completion/complete": completion,
    }


def _guard(
    authorization: "Authorization | None",
    feature_methods: dict[str, FeatureMethod],
    *catalogues: Catalogue[Any, Any],
) -> "Guard | None":
    if authorization is None:
        return None
    from axolotl_server.authorization.guard import Guard

    return Guard(authorization, feature_methods, catalogues)


def _watch(authorization: "Authorization | None", resources: ResourceMethods) -> "ResourceWatch | None":
    if authorization is None:
        return None
    from axolotl_server.authorization.guard import ResourceWatch

    return ResourceWatch(authorization, resources)


def _subscriptions(settings: ServerSettings, watch: "ResourceWatch | None") -> Subscriptions:
    return Subscriptions(settings.subscriptions.maximum, None if watch is None else watch.kin_of)


class ServerContainer(containers.DeclarativeContainer):
    """What a server is made of; each provider can be overridden in a test."""

    settings: providers.Dependency[ServerSettings] = providers.Dependency(instance_of=ServerSettings)
    roles: providers.Dependency[Roles] = providers.Dependency(instance_of=Roles)

    deadlines = providers.Singleton(DeadlineTable)
    inflight = providers.Singleton(_inflight, settings)
    threads = providers.Singleton(_threads, settings, inflight)
    sealer = providers.Singleton(_sealer, settings)
    tasks = providers.Singleton(_tasks, settings)
    audit = providers.Singleton(_audit, settings, roles)
    authorization = providers.Singleton(_authorization, settings, roles)
    quota_store = providers.Singleton(_quota_store, settings, roles)
    result_store = providers.Singleton(_result_store, settings, roles)
    console = providers.Singleton(_console, settings)
    policies = providers.Singleton(
        Policies,
        result_store=result_store,
        close_scope=inflight.provided.scope_closer.close,
        audit=audit,
        authorization=authorization,
        quota_store=quota_store,
    )
    layers = providers.Singleton(_layers, deadlines, roles, settings, policies, console)
    processes = providers.Singleton(_processes, settings)
    runners = providers.Singleton(_runners, threads, processes)
    toolsets = providers.Singleton(_toolsets, roles)
    observation = providers.Singleton(_observation, settings)
    records = providers.Singleton(_records, observation, audit)
    binder = providers.Singleton(Binder, settings, layers, runners, toolsets, records)

    registry = providers.Singleton(_registry, roles)
    prompt_registry = providers.Singleton(_prompt_registry, roles)
    resource_registry = providers.Singleton(_resource_registry, roles)
    tools = providers.Singleton(ToolCatalogue, registry, binder, settings, roles.provided.name_rule, authorization)
    prompts = providers.Singleton(PromptCatalogue, prompt_registry, binder, settings, authorization)
    resources = providers.Singleton(ResourceCatalogue, resource_registry, binder, settings, authorization)
    templates = providers.Singleton(TemplateCatalogue, resource_registry, binder, settings, authorization)
    tool_methods = providers.Singleton(_tool_methods, tools, inflight, settings)
    prompt_methods = providers.Singleton(PromptMethods, prompts, inflight)
    resource_methods = providers.Singleton(_resource_methods, resources, templates, inflight, settings)
    completion_methods = providers.Singleton(CompletionMethods, prompts, templates, inflight)
    feature_methods = providers.Singleton(
        _feature_methods, tool_methods, prompt_methods, resource_methods, completion_methods
    )
    guard = providers.Singleton(_guard, authorization, feature_methods, tools, prompts, resources, templates)
    watch = providers.Singleton(_watch, authorization, resource_methods)
    subscriptions = providers.Singleton(_subscriptions, settings, watch)

    parts = providers.Singleton(
        MethodParts,
        settings=settings,
        roles=roles,
        tools=tools,
        prompts=prompts,
        resources=resources,
        templates=templates,
        tool_methods=tool_methods,
        resource_methods=resource_methods,
        feature_methods=feature_methods,
        binder=binder,
        inflight=inflight,
        subscriptions=subscriptions,
        deadlines=deadlines,
        sealer=sealer,
        tasks=tasks,
        guard=guard,
        watch=watch,
        console=console,
        observation=observation,
    )
    eras = providers.Singleton(make_eras, parts)
    handler = providers.Singleton(_handler, eras, inflight, subscriptions, observation)
