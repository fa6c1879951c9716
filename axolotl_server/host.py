"""The host of a server: starts everything around a container, and stops it in reverse order."""

import inspect
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from dependency_injector import containers
from msgspec import structs

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.content import app_link
from axolotl_core.errors import ConfigurationError
from axolotl_core.registry import ToolRegistry
from axolotl_server.calls.binding import Binding
from axolotl_server.execution.closing import CLOSE_SECONDS, close_resources
from axolotl_server.execution.log import contain_log_failures
from axolotl_server.execution.stop_signal import StopSignal
from axolotl_server.execution.watchdog import STALL_SECONDS, Watchdog
from axolotl_server.extension import Extension
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.handler import DefaultHandler
from axolotl_server.hosting.assembly import ServerAssembly
from axolotl_server.hosting.container_loading import start_resources
from axolotl_server.hosting.role_mistakes import extension_failure, misspelled_roles
from axolotl_server.hosting.role_resolution import resolve_roles, resolve_settings
from axolotl_server.hosting.roles import Roles
from axolotl_server.protocol.subscriptions import Subscriptions
from axolotl_server.settings.loading import LoadedSettings, load_with_origins
from axolotl_server.settings.policies import AuditSettings
from axolotl_server.settings.server import ServerSettings, TelemetrySettings
from axolotl_server.settings.settings_file import FileSettings

if TYPE_CHECKING:
    from axolotl_server.http.asgi import IAuthenticator
    from axolotl_server.observation.observation import Observation

ExtensionT = TypeVar("ExtensionT", bound=Extension)

_CLOSING_SECONDS = 3.0

_log = logging.getLogger("axolotl")


class ServerHost:
    """Builds and runs a server around a user's container, which is not used on the path of a call."""

    settings: ServerSettings
    loaded_settings: LoadedSettings
    """The settings with their origins."""
    roles: Roles
    assembly: ServerAssembly
    registry: ToolRegistry
    handler: DefaultHandler
    watchdog: Watchdog | None = None
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
        self._stack = AsyncExitStack()
        self._served = AsyncExitStack()
        """Closes the objects made to serve it, which are made last, but are needed until all tasks have ended."""
        self.stop_signal = StopSignal()
        """Whether the server should stop; the code that serves it watches this."""

    async def start(self) -> None:
        """Start resources, resolve roles and compile every feature.

        If something cannot be used, everything is stopped again and a ConfigurationError lists all findings.
        """
        contain_log_failures()
        try:
            self._finally("resources of the container", lambda: close_resources(self._container, CLOSE_SECONDS))
            await start_resources(self._container)
            overrides = await resolve_settings(self._container)
            loaded = self.loaded_settings = load_with_origins(
                flags=self._flags, file=self._file, container=overrides, environment=self._environment
            )
            self.settings = loaded.settings if self._adapt is None else self._adapt(loaded.settings)
            self.roles = await resolve_roles(self._container, self._toolsets, self.settings)
            models = {one.section: one.section_model for one in self.roles.extensions if one.section}
            self.loaded_settings = loaded.with_extensions(models)
            final: dict[str, Any] = {"extensions": self.loaded_settings.settings.extensions}
            for mistake in misspelled_roles(self._container):
                _log.warning("%s", mistake)
            if not self._is_audited:
                final |= {"audit": AuditSettings(), "telemetry": TelemetrySettings()}
                self.roles = structs.replace(self.roles, audit_sinks=())
            self.settings = self.settings.model_copy(update=final)
            self._compose()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close everything, the last made first. A step that fails is logged, and all others still run.

        All calls have been answered before, by the code that served them.
        """
        await self._stack.aclose()

    def on_stop(self, close: Callable[[], object]) -> None:
        """Close an object when the server stops, before the objects that it depends on."""
        self._served.push_async_callback(_close, "objects made to serve it", close)

    def _finally(self, what: str, close: Callable[[], object]) -> None:
        """Close an object when the server stops, after all that are made later."""
        self._stack.push_async_callback(_close, what, close)

    def bindings(self) -> dict[str, list[Binding[Any]]]:
        """Return all features that are served, by kind; what an extension adds counts as its kind only."""
        made = self.assembly
        found = {
            "tools": made.tools.bindings(),
            "prompts": made.prompts.bindings(),
            "resources": [one for one in made.resources.bindings() if one.spec.kind == "resource"],
            "templates": [one for one in made.templates.bindings() if one.spec.kind == "resource"],
            **{catalogue.field: catalogue.bindings() for catalogue in made.added_catalogues},
        }
        return {kind: [*bindings] for kind, bindings in found.items()}

    def extension(self, kind: type[ExtensionT]) -> ExtensionT | None:
        """Return the extension of a class, if the server has it."""
        return next((one for one in self.assembly.extensions if isinstance(one, kind)), None)

    async def begin(self) -> None:
        """Let extensions begin to work, because the server begins to serve."""
        for one in self.assembly.extensions:
            try:
                await one.start()
            except Exception as error:
                raise extension_failure(one.identifier, "start", error) from error

    def pause(self) -> None:
        """Let extensions begin nothing new, because the server is about to stop."""
        for one in self.assembly.extensions:
            one.pause()

    async def stop_extensions(self) -> None:
        """Stop the extensions, the last one first, while clients that are still connected can be notified."""
        for one in reversed(self.assembly.extensions):
            await _close(f"the extension {one.identifier}", partial(self.stop_signal.run_unless_urgent, one.stop()))

    async def __aenter__(self) -> "ServerHost":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    def _compose(self) -> None:
        # Pydantic only warns about a model whose values do not match its fields. Such a result must fail instead.
        warnings.filterwarnings("error", message="Pydantic serializer warnings")
        self._register()
        assembly = self.assembly = ServerAssembly(
            self.settings, self.roles, has_principals=self.has_principals, target=self.target
        )
        self._finally("processes", assembly.processes.close)
        self._finally("threads", assembly.threads.close)
        if assembly.redis is not None:
            self._finally("Redis", assembly.redis.close)
        self._stack.push_async_exit(self._served)
        self._finally("stores", self._close_stores)
        observation = assembly.observation
        if observation is not None:
            self._finally("telemetry", lambda: self.stop_signal.run_unless_urgent(observation.close()))
        if assembly.audit is not None:
            self._finally("the audit log", assembly.audit.close)
        scopes, unless_urgent = assembly.inflight.scope_closer, self.stop_signal.run_unless_urgent
        self._finally("objects that calls used", lambda: unless_urgent(scopes.wait_closed(_CLOSING_SECONDS)))
        self._finally("extensions", self.stop_extensions)
        self.registry, self.handler = self.roles.tool_registry, assembly.handler
        self._check_apps()
        catalogues: tuple[Catalogue[Any, Any], ...] = (*assembly.catalogues, *assembly.added_catalogues)
        for catalogue in catalogues:
            self._finally("registries", catalogue.close)
        self._announce(assembly.subscriptions)
        self.watchdog = Watchdog(STALL_SECONDS)
        self.watchdog.start()
        self._finally("the watchdog", self.watchdog.stop)
        if observation is not None:
            self._observe(observation)

    def _observe(self, observation: "Observation") -> None:
        """Let the metrics read the numbers that the server keeps."""
        from axolotl_server.observation.metrics import read_parts

        assembly = self.assembly
        read_parts(
            observation.values,
            inflight=assembly.inflight,
            subscriptions=assembly.subscriptions,
            threads=assembly.threads,
            processes=assembly.processes,
            layers=assembly.layers.inner,
            watchdog=self.watchdog,
        )
        for one in assembly.extensions:
            one.observe(observation)

    async def _close_stores(self) -> None:
        """Close the stores that were made here; the container closes its own."""
        if self.assembly.quota_store is not None and self.roles.quota_store is None:
            await self.assembly.quota_store.close()
        if self.roles.result_store is None:
            await self.assembly.result_store.close()

    def _register(self) -> None:
        """Add the features to the registries, which may belong to the container, until the server stops."""
        for kind, registry in self.roles.registries.items():
            items = [item for one in self.roles.sets[kind] for item in one.items]
            names = [name for name in map(registry.name_of, items) if name not in registry]
            self._finally("registries", partial(registry.unregister_range, names))
            registry.register_range(items)

    def _announce(self, subscriptions: Subscriptions) -> None:
        """Notify clients of all changes in the registries."""
        for kind, registry in self.roles.registries.items():
            self._finally("registries", registry.on_change(partial(subscriptions.list_changed, kind)))
        self._finally("registries", self.roles.resource_registry.on_update(subscriptions.updated))

    def _check_apps(self) -> None:
        """Check that the page of each tool exists."""
        missing = [
            f"Tool {tool.name!r} names the page {link.resource_uri!r}, but there is no such resource"
            for tool in self.roles.tools
            if (link := app_link(tool.app)) is not None and self.assembly.resources.find(link.resource_uri) is None
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
        await host.begin()
        try:
            yield host.handler
        finally:
            host.handler.inflight.stop_all(CancelReason.SHUTDOWN)


async def _close(what: str, close: Callable[[], object]) -> None:
    try:
        outcome = close()
        if inspect.isawaitable(outcome):
            await outcome
    except ConfigurationError:
        return  # it could not be made, as the error of the start says
    except Exception:
        _log.exception("stopping: %s failed to close", what)
