"""The composition root: the objects of a server, made from its settings and roles."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.layers import run_in_place
from axolotl_core.policies.quota import IQuotaStore
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_server.calls.binding import Binder, Layers, Runners
from axolotl_server.calls.feature_method import FeatureMethod
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.calls.sealing import TTL_SECONDS, StateSealer
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.execution.processes import ProcessRunner
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.extension import Extension
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.prompts import PromptCatalogue
from axolotl_server.features.resources import ResourceCatalogue, ResourceMethods, TemplateCatalogue
from axolotl_server.features.tools import ToolCatalogue, ToolMethods
from axolotl_server.handler import DefaultHandler
from axolotl_server.hosting.layer_stack import layer_stack
from axolotl_server.hosting.method_tables import make_eras, method_table
from axolotl_server.hosting.role_mistakes import extension_failure
from axolotl_server.hosting.roles import Roles
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.eras.era import Eras, Row
from axolotl_server.protocol.extensions import ExtensionMethods
from axolotl_server.protocol.lifecycle import capabilities_of
from axolotl_server.protocol.request_control import RequestControl
from axolotl_server.protocol.subscriptions import Subscriptions
from axolotl_server.settings.server import RedisSettings, ServerSettings
from axolotl_server.stores.results import make_result_store

if TYPE_CHECKING:
    from axolotl_server.access.authorization import Authorization
    from axolotl_server.access.guard import Guard, ResourceWatch
    from axolotl_server.access.quotas import RequestQuotas
    from axolotl_server.audit.audit import Audit
    from axolotl_server.observation.observation import Observation
    from axolotl_server.stores.redis_client import RedisClient

# Code that few servers need is imported by those that need it: every module costs time at startup.


_MAX_CONNECTIONS: Final = 20
"""The maximum number of connections to Redis per process."""


class ServerAssembly:
    """The objects of one server, each made when it is first needed; assign one before that to replace it."""

    def __init__(
        self, settings: ServerSettings, roles: Roles, *, has_principals: bool = False, target: str | None = None
    ) -> None:
        self.settings = settings
        self.roles = roles
        self.target = target
        """The target that the container was loaded from; None if it was not loaded by name."""
        self._has_principals = has_principals

    @cached_property
    def extensions(self) -> tuple[Extension, ...]:
        """The extensions, each attached to this server."""
        found = (*self.roles.bundled, *self.roles.extensions)
        for one in found:
            try:
                one.attach(self, self.settings.extensions.get(one.section))
            except Exception as error:
                raise extension_failure(one.identifier, "attach", error) from error
        return found

    @cached_property
    def deadlines(self) -> DeadlineTable:
        """The calls that run, by when they must end."""
        return DeadlineTable()

    @cached_property
    def inflight(self) -> RunningCalls:
        """The calls that run."""
        limits = self.settings.limits
        return RunningCalls(limits.max_inflight, limits.of_caller(limits.max_inflight))

    @cached_property
    def threads(self) -> ThreadRunner:
        """The threads that run tools."""
        return ThreadRunner(self.settings.limits.threads, self.inflight.zombies)

    @cached_property
    def processes(self) -> ProcessRunner:
        """The processes that run tools."""
        return ProcessRunner(self.settings.limits.processes, self.settings.limits.max_process_bytes)

    @cached_property
    def sealer(self) -> StateSealer:
        """Seals the state that clients carry between the rounds of a request."""
        return StateSealer([key.get_secret_value() for key in self.settings.protocol.state_keys], TTL_SECONDS)

    @cached_property
    def audit(self) -> "Audit | None":
        """The audit log, if there is one."""
        if not self.settings.audit.enabled and not self.roles.audit_sinks:
            return None
        from axolotl_server.audit.audit import make_audit

        return make_audit(self.settings.audit, self.roles.audit_sinks)

    @cached_property
    def authorization(self) -> "Authorization | None":
        """The access rules, if there are any."""
        settings, roles = self.settings, self.roles
        has_tokens = settings.auth.is_used or roles.token_verifier is not None or self._has_principals
        if roles.authorizer is None and not has_tokens and not settings.authorization.has_policy:
            return None
        from axolotl_server.access.authorization import authorization_of

        return authorization_of(settings.authorization, roles.authorizer)

    @cached_property
    def redis(self) -> "RedisClient | None":
        """The connections to Redis, which all stores share."""
        redis = self.settings.redis
        if redis.url is None:
            return None
        load_redis(redis)
        from axolotl_server.stores.redis_client import RedisClient

        return RedisClient(redis.url.get_secret_value(), prefix=redis.prefix, max_connections=_MAX_CONNECTIONS)

    @cached_property
    def quota_store(self) -> IQuotaStore | None:
        """The store of the quotas, if there are any."""
        if not self.settings.quotas.rules:
            return None
        from axolotl_server.access.quotas import quota_store

        return quota_store(self.settings.quotas, self.redis, self.roles.quota_store)

    @cached_property
    def request_quotas(self) -> "RequestQuotas | None":
        """The quotas that count requests, if there are any."""
        if self.quota_store is None:
            return None
        from axolotl_server.access.quotas import request_quotas

        return request_quotas(self.settings.quotas, self.quota_store)

    @cached_property
    def result_store(self) -> IResultStore:
        """The store of the results of idempotent tools."""
        return make_result_store(self.settings.idempotency, self.redis, self.roles.result_store)

    @cached_property
    def result_outages(self) -> OutageLog:
        """The log of outages of the result store."""
        is_open = self.settings.idempotency.on_store_failure == "open"
        return OutageLog("The result store", "calls run unprotected" if is_open else "calls refused")

    @cached_property
    def observation(self) -> "Observation | None":
        """Traces, metrics and structured logs, if any of them is enabled."""
        telemetry, metrics, log = self.settings.telemetry, self.settings.metrics, self.settings.log
        if not (telemetry.traces or telemetry.metrics or telemetry.logs or metrics.enabled or log.format == "json"):
            return None
        from axolotl_server.observation.observation import Observation

        return Observation(self.settings, lambda: self.feature_methods)

    @cached_property
    def observers(self) -> tuple[IObserver, ...]:
        """What notices every request: extensions and the telemetry."""
        added = (observer for one in self.extensions for observer in one.observers())
        telemetry = None if self.observation is None else self.observation.observer
        return (*added,) if telemetry is None else (*added, telemetry)

    @cached_property
    def layers(self) -> Layers:
        """The layers around every feature."""
        return layer_stack(self)

    @cached_property
    def binder(self) -> Binder:
        """Compiles features."""
        return Binder(self.settings, self.layers, self.runners, self.roles.set_names)

    @property
    def runners(self) -> Runners:
        """The functions that run the code of a feature, by the kind of execution."""
        return {"loop": run_in_place, "thread": self.threads.runner, "process": self.processes.runner}

    @cached_property
    def tools(self) -> ToolCatalogue:
        """The tools that are served."""
        return ToolCatalogue(
            self.roles.tool_registry, self.binder, self.settings, self.roles.name_rule, self.authorization
        )

    @cached_property
    def prompts(self) -> PromptCatalogue:
        """The prompts that are served."""
        return PromptCatalogue(self.roles.prompt_registry, self.binder, self.settings, self.authorization)

    @cached_property
    def resources(self) -> ResourceCatalogue:
        """The resources that are served."""
        return ResourceCatalogue(self.roles.resource_registry, self.binder, self.settings, self.authorization)

    @cached_property
    def templates(self) -> TemplateCatalogue:
        """The resource templates that are served."""
        return TemplateCatalogue(self.roles.resource_registry, self.binder, self.settings, self.authorization)

    @property
    def catalogues(self) -> tuple[ToolCatalogue, PromptCatalogue, ResourceCatalogue, TemplateCatalogue]:
        """All features that are served, except those of kinds that extensions add."""
        return self.tools, self.prompts, self.resources, self.templates

    @cached_property
    def added_catalogues(self) -> tuple[Catalogue[Any, Any], ...]:
        """The features of the kinds that extensions add."""
        return tuple(catalogue for one in self.extensions for catalogue in one.catalogues())

    @cached_property
    def tool_methods(self) -> ToolMethods:
        """Calls tools."""
        return ToolMethods(self.tools, self.inflight, self.settings.protocol.invalid_arguments)

    @cached_property
    def resource_methods(self) -> ResourceMethods:
        """Reads resources, and subscribes to them."""
        return ResourceMethods(self.resources, self.templates, self.inflight)

    @cached_property
    def capabilities(self) -> Mapping[Revision, Mapping[str, Any]]:
        """What the server offers to the clients of each revision."""
        offers, tools = self.roles.offers, self.roles.tools
        return {one: capabilities_of(offers, self.extensions, tools, one) for one in REVISIONS}

    @cached_property
    def method_table(self) -> tuple[Row, ...]:
        """All methods and notifications, of all revisions."""
        return tuple(method_table(self))

    @cached_property
    def feature_methods(self) -> Mapping[str, FeatureMethod]:
        """The methods that name a feature, with the object that finds it."""
        return {row.method: row.feature for row in self.method_table if row.feature is not None}

    @cached_property
    def extension_methods(self) -> ExtensionMethods:
        """The methods of extensions."""
        return ExtensionMethods(self.roles.extensions, self.binder, self.inflight)

    @cached_property
    def guard(self) -> "Guard | None":
        """Refuses requests for features that the principal may not use, where there are access rules."""
        if self.authorization is None:
            return None
        from axolotl_server.access.guard import Guard

        return Guard(self.authorization, self.catalogues)

    @cached_property
    def watch(self) -> "ResourceWatch | None":
        """Hides changes of resources that the principal may not read, where there are access rules."""
        if self.authorization is None:
            return None
        from axolotl_server.access.guard import ResourceWatch

        return ResourceWatch(self.authorization, self.resource_methods)

    @cached_property
    def subscriptions(self) -> Subscriptions:
        """The clients that are notified of changes."""
        audience_of = None if self.watch is None else self.watch.audience_of
        maximum = self.settings.subscriptions.maximum
        return Subscriptions(maximum, audience_of, self.settings.limits.of_caller(maximum))

    @cached_property
    def control(self) -> RequestControl:
        """Lets clients cancel requests, answer questions, and resume their own streams."""
        if self.authorization is None:
            return RequestControl(None)
        from axolotl_server.access.guard import StreamGuard

        return RequestControl(StreamGuard(self.authorization, self.tools, self.catalogues[1:]))

    @cached_property
    def eras(self) -> Eras:
        """The revisions of the protocol with their methods."""
        return make_eras(self)

    @cached_property
    def handler(self) -> DefaultHandler:
        """Handles every message."""
        return DefaultHandler(self.eras, self.inflight, self.subscriptions, self.control, self.observers)


def load_redis(settings: RedisSettings) -> None:
    """Import the Redis library if the settings need it: it takes a while, so do it before an event loop runs."""
    if settings.url is None:
        return
    try:
        import axolotl_server.stores.redis_client  # noqa: F401
    except ImportError:
        raise ConfigurationError.missing_extra("Setting redis.url", "redis") from None
