"""The host of a server: starts everything around a container, and stops it in reverse order."""

import inspect
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dependency_injector import containers
from msgspec import structs

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.content import app_link
from axolotl_core.errors import ConfigurationError
from axolotl_core.registry import Registry, ToolRegistry
from axolotl_server.configuration.loading import LoadedSettings, load_with_origins
from axolotl_server.configuration.settings_file import FileSettings
from axolotl_server.features.prompts import PromptCatalogue
from axolotl_server.features.resources import ResourceCatalogue, TemplateCatalogue
from axolotl_server.features.tools import ToolCatalogue
from axolotl_server.handler import DefaultHandler
from axolotl_server.hosting.assembly import ServerAssembly
from axolotl_server.hosting.container_loading import start_resources
from axolotl_server.hosting.role_mistakes import misspelled_roles
from axolotl_server.hosting.roles import Roles, resolve_roles, resolve_settings
from axolotl_server.lifecycle.closing import CLOSE_SECONDS, close_resources
from axolotl_server.lifecycle.log import contain_log_failures
from axolotl_server.lifecycle.stop_signal import StopSignal
from axolotl_server.lifecycle.watchdog import STALL_SECONDS, Watchdog
from axolotl_server.methods.subscriptions import Listable, Subscriptions
from axolotl_server.settings.policies import AuditSettings
from axolotl_server.settings.server import ServerSettings, TelemetrySettings

if TYPE_CHECKING:
    from axolotl_server.asgi.http import IAuthenticator
    from axolotl_server.audit.assembly import Audit
    from axolotl_server.console.console import Console
    from axolotl_server.observation.observation import Observation
    from axolotl_server.skills.skill_methods import SkillCatalogue
    from axolotl_server.stores.redis_client import RedisClient

_CLOSING_SECONDS = 3.0
_LISTED: dict[Listable, str] = {
    "tools": "registry",
    "prompts": "prompt_registry",
    "resources": "resource_registry",
}
"""The role that holds the registry of each list."""

_log = logging.getLogger("axolotl")


class ServerHost:
    """Builds and runs a server around a user's container, which is not used on the path of a call."""

    settings: ServerSettings
    loaded_settings: LoadedSettings
    """The settings with their origins."""
    roles: Roles
    assembly: ServerAssembly
    registry: ToolRegistry
    catalogue: ToolCatalogue
    prompts: PromptCatalogue
    resources: ResourceCatalogue
    templates: TemplateCatalogue
    skills: "SkillCatalogue | None" = None
    handler: DefaultHandler
    audit: "Audit | None" = None
    watchdog: Watchdog | None = None
    console: "Console | None" = None
    observation: "Observation | None" = None
    redis: "RedisClient | None" = None
    authenticator: "IAuthenticator | None" = None
    """Authenticates HTTP requests instead of the settings `auth`."""
    has_principals: bool = False
    """Whether the authenticator identifies callers, so that features require their scopes, as they do with tokens."""
    target: str | None = None
    """The target that the container was loaded from; None if it was not loaded by name."""

    def __init__(
        self,
        container: containers.Container,
        *,
        flags: Mapping[str, Any] | None = None,
        file: FileSettings | None = None,
        toolsets: Sequence[str] = (),
        adapt: Callable[[ServerSettings], ServerSettings] | None = None,
        environment: Mapping[str, str] | None = None,
        is_audited: bool = True,
    ) -> None:
        self._container = container
        self._adapt = adapt
        self._flags = flags or {}
        self._file = file
        self._toolsets = toolsets
        self._environment = environment
        self._is_audited = is_audited
        self._undo = ExitStack()
        self._closers: list[Callable[[], object]] = []
        self.stop_signal = StopSignal()
        """Whether the server should stop; the code that serves it watches this."""

    async def start(self) -> None:
        """Start resources, resolve roles and compile every feature.

        If something cannot be used, everything is stopped again and a ConfigurationError lists all findings.
        """
        contain_log_failures()
        try:
            await start_resources(self._container)
            self.settings = await self._load_settings()
            self.roles = await resolve_roles(self._container, self._toolsets)
            for mistake in misspelled_roles(self._container):
                _log.warning("%s", mistake)
            if not self._is_audited:
                unrecorded = {"audit": AuditSettings(), "telemetry": TelemetrySettings()}
                self.settings = self.settings.model_copy(update=unrecorded)
                self.roles = structs.replace(self.roles, audit_sinks=())
            self._compose()
            if self.has_tasks and not self.assembly.tasks.engine.durable:
                await self.assembly.tasks.start(works=True)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close everything, in this order. A step that fails is logged and does not keep the others from running.

        All calls have been answered before, by the code that served them.
        """
        steps: dict[str, Callable[[], object]] = {
            "tasks": self.end_tasks,
            "objects that calls used": self._close_scopes,
            "the audit log": self._close_audit,
            "telemetry": self._flush_telemetry,
            "stores": self._close_stores,
            "objects made to serve it": self._close_made,
            "Redis": self._close_redis,
            "threads and processes": self._close_workers,
            "registries": self._undo.close,
            "resources of the container": self._close_resources,
        }
        try:
            while steps:
                what = next(iter(steps))
                await _close(what, steps.pop(what))
        except BaseException:  # a cancellation, for example, which is not a reason to leave the rest open
            for what, step in steps.items():
                await _close(what, step)
            raise

    def on_stop(self, close: Callable[[], object]) -> None:
        """Close an object when the server stops, before the objects that it depends on."""
        self._closers.append(close)

    async def begin_tasks(self, *, works: bool | None = None) -> None:
        """Connect to the store of tasks, and run tasks from now on, if the settings say so."""
        if self.has_tasks:
            await self.assembly.tasks.start(works=self.settings.tasks.run_here if works is None else works)

    def pause_tasks(self) -> None:
        """Begin no more stored tasks, because the server stops."""
        if self.has_tasks and self.assembly.tasks.engine.durable:
            self.assembly.tasks.pause()

    async def end_tasks(self) -> None:
        """Stop all tasks, and notify the clients that are still connected."""
        if self.has_tasks:
            await self.stop_signal.run_unless_urgent(self.assembly.tasks.close())

    async def _close_scopes(self) -> None:
        if self._is_composed:
            closer = self.assembly.inflight.scope_closer
            await self.stop_signal.run_unless_urgent(closer.wait_closed(_CLOSING_SECONDS))

    def _close_audit(self) -> None:
        if self.audit is not None:
            self.audit.close()

    async def _flush_telemetry(self) -> None:
        if self.observation is not None:
            await self.stop_signal.run_unless_urgent(self.observation.close())

    async def _close_made(self) -> None:
        while self._closers:
            await _finish(self._closers.pop()())

    async def _close_redis(self) -> None:
        if self.redis is not None:
            await self.redis.close()

    def _close_workers(self) -> None:
        if self._is_composed:
            self.assembly.threads.close()
            self.assembly.processes.close()

    async def _close_resources(self) -> None:
        await close_resources(self._container, CLOSE_SECONDS)

    async def __aenter__(self) -> "ServerHost":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def has_tasks(self) -> bool:
        """Whether tools run as tasks; few servers have made the objects for that."""
        return self._is_composed and "tasks" in vars(self.assembly)

    @property
    def _is_composed(self) -> bool:
        return hasattr(self, "assembly")

    async def _load_settings(self) -> ServerSettings:
        overrides = await resolve_settings(self._container)
        self.loaded_settings = load_with_origins(
            flags=self._flags, file=self._file, container=overrides, environment=self._environment
        )
        return self.loaded_settings.settings if self._adapt is None else self._adapt(self.loaded_settings.settings)

    def _compose(self) -> None:
        # Pydantic only warns about a model whose values do not match its fields. Such a result must fail instead.
        warnings.filterwarnings("error", message="Pydantic serializer warnings")
        self._undo_registrations()
        assembly = self.assembly = ServerAssembly(self.settings, self.roles, has_principals=self.has_principals)
        self.redis = assembly.redis
        self.registry, self.catalogue, self.handler = assembly.registry, assembly.tools, assembly.handler
        self.prompts, self.resources, self.templates = assembly.prompts, assembly.resources, assembly.templates
        self.audit, self.console, self.observation = assembly.audit, assembly.console, assembly.observation
        self._check_apps()
        self.skills = assembly.skills
        for catalogue in (self.catalogue, self.prompts, self.resources, self.templates, self.skills):
            if catalogue is not None:
                self._undo.callback(catalogue.close)
        self._announce(assembly.subscriptions)
        self._watch_loop()
        if self.observation is not None:
            self._observe(self.observation)

    def _watch_loop(self) -> None:
        self.watchdog = Watchdog(STALL_SECONDS)
        self.watchdog.start()
        self._undo.callback(self.watchdog.stop)

    def _observe(self, observation: "Observation") -> None:
        """Let the metrics read the numbers that the server keeps."""
        from axolotl_server.observation.metrics import Gauges

        assembly = self.assembly
        gauges = Gauges(
            inflight=assembly.inflight,
            subscriptions=assembly.subscriptions,
            tasks=assembly.tasks,
            threads=assembly.threads,
            processes=assembly.processes,
            layers=assembly.layers,
        )
        gauges.register(observation.values, self.watchdog)
        assembly.tasks.runner.tracing = observation.spans

    async def _close_stores(self) -> None:
        """Close the stores that were made here; the container closes its own."""
        if not self._is_composed:
            return
        if self.assembly.quota_store is not None and self.roles.quota_store is None:
            await self.assembly.quota_store.close()
        if self.roles.result_store is None:
            await self.assembly.result_store.close()

    def _undo_registrations(self) -> None:
        """When the server stops, restore the registries, which may belong to the container."""
        roles = self.roles
        added: list[tuple[Registry[Any], Sequence[Any]]] = [
            (roles.registry, roles.tools),
            (roles.prompt_registry, roles.prompts),
            (roles.resource_registry, roles.resources),
        ]
        for registry, items in added:
            names = [name for name in map(registry.name_of, items) if name not in registry]
            self._undo.callback(registry.unregister_range, names)

    def _announce(self, subscriptions: Subscriptions) -> None:
        """Notify clients of all changes in the registries."""
        roles = self.roles
        for kind, registry in _LISTED.items():
            changed = partial(subscriptions.list_changed, kind)
            self._undo.callback(getattr(roles, registry).on_change(changed))
        self._undo.callback(roles.resource_registry.on_update(subscriptions.updated))

    def _check_apps(self) -> None:
        """Check that the page of each tool exists."""
        missing = [
            f"Tool {tool.name!r} names the page {link.resource_uri!r}, but there is no such resource"
            for tool in self.roles.tools
            if (link := app_link(tool.app)) is not None and self.resources.find(link.resource_uri) is None
        ]
        if missing:
            raise ConfigurationError(*missing)


@asynccontextmanager
async def make_handler(
    container: containers.Container, *, settings: Mapping[str, Any] | None = None
) -> AsyncIterator[DefaultHandler]:
    """Start the server of a container, give the handler of its messages to the block, and stop the server.

    `settings` has the form of the settings file. Calls that are still running at the end of the block are stopped.
    """
    async with ServerHost(container, flags=settings) as host:
        await host.begin_tasks()
        try:
            yield host.handler
        finally:
            host.handler.inflight.stop_all(CancelReason.SHUTDOWN)


async def _close(what: str, step: Callable[[], object]) -> None:
    try:
        await _finish(step())
    except ConfigurationError:
        return  # it could not be made, as the error of the start says
    except Exception:
        _log.exception("stopping: %s failed to close", what)


async def _finish(outcome: Any) -> None:
    if inspect.isawaitable(outcome):
        await outcome
