"""A server's life: start everything, serve, stop everything in reverse."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dependency_injector import containers, providers

from axolotl_core.app_link import app_link
from axolotl_core.errors import ConfigurationError
from axolotl_core.registry import Registry, ToolRegistry
from axolotl_server.catalogues.prompts import PromptCatalogue
from axolotl_server.catalogues.resources import ResourceCatalogue, TemplateCatalogue
from axolotl_server.catalogues.tools import ToolCatalogue
from axolotl_server.configuration import FileSettings, load_settings
from axolotl_server.container import ServerContainer
from axolotl_server.handler import DefaultHandler
from axolotl_server.roles import Roles, resolve_roles, resolve_settings
from axolotl_server.settings import ServerSettings
from axolotl_server.subscriptions import Listable, Subscriptions
from axolotl_server.watchdog import Watchdog

if TYPE_CHECKING:
    from axolotl_server.audit.composition import Audit

__all__ = ["ServerHost"]

_FINALISING_SECONDS = 5.0
_LISTED: dict[Listable, str] = {
    "tools": "registry",
    "prompts": "prompt_registry",
    "resources": "resource_registry",
}
"""The registry behind each list, as the roles call it."""


class ServerHost:
    """Composes a server around a user's container; the container leaves the call path when it has started."""

    settings: ServerSettings
    roles: Roles
    registry: ToolRegistry
    catalogue: ToolCatalogue
    prompts: PromptCatalogue
    resources: ResourceCatalogue
    templates: TemplateCatalogue
    handler: DefaultHandler
    audit: "Audit | None"
    watchdog: Watchdog | None = None

    def __init__(
        self,
        container: containers.Container,
        *,
        flags: Mapping[str, Any] | None = None,
        file: FileSettings | None = None,
        toolsets: Sequence[str] = (),
    ) -> None:
        self._container = container
        self._flags = flags or {}
        self._file = file
        self._toolsets = toolsets
        self._server: Any = None
        self._undo = ExitStack()

    async def start(self) -> None:
        """Start resources, resolve roles, compile every tool.

        Raises:
            ConfigurationError: with all findings; then nothing stays started.
        """
        try:
            await self._start_resources()
            self.settings = await self._load_settings()
            self.roles = await resolve_roles(self._container, self._toolsets)
            self._compose()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop tasks, let go of threads and of the registry, and shut the container's resources down."""
        try:
            if self._server is not None:
                await self._server.tasks().close()
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        if self._server is not None:
            await self._server.inflight().finalised(_FINALISING_SECONDS)
            await self._close_stores()
            self._server.threads().close()
            self._server.processes().close()
        try:
            self._undo.close()
        finally:
            await _finish(self._container.shutdown_resources())

    async def __aenter__(self) -> "ServerHost":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def _start_resources(self) -> None:
        try:
            await _finish(self._container.init_resources())
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise ConfigurationError(f"A resource of the container fails to start: {problem}") from error

    async def _load_settings(self) -> ServerSettings:
        said = await resolve_settings(self._container)
        return load_settings(flags=self._flags, file=self._file, container=said)

    def _compose(self) -> None:
        # A model that lies about its fields' types would only warn when it is written: it shall fail instead.
        warnings.filterwarnings("error", message="Pydantic serializer warnings")
        self._undo_registrations()
        server = self._server = ServerContainer(
            settings=providers.Object(self.settings), roles=providers.Object(self.roles)
        )
        self.registry, self.catalogue, self.handler = server.registry(), server.tools(), server.handler()
        self.prompts, self.resources, self.templates = server.prompts(), server.resources(), server.templates()
        self.audit = server.audit()
        if self.audit is not None:
            self._undo.callback(self.audit.trail.close)
        self._check_apps()
        for catalogue in (self.catalogue, self.prompts, self.resources, self.templates):
            self._undo.callback(catalogue.close)
        self._announce(server.subscriptions())
        self._watch_loop()

    def _watch_loop(self) -> None:
        seconds = self.settings.limits.loop_stall_seconds
        if seconds is not None:
            self.watchdog = Watchdog(seconds)
            self.watchdog.start()
            self._undo.callback(self.watchdog.stop)

    async def _close_stores(self) -> None:
        """Let go of the stores that were made here; one of the container's own is the container's."""
        for name in ("quota_store", "result_store"):
            store = getattr(self._server, name)()
            if store is not None and getattr(self.roles, name) is None:
                await store.close()

    def _undo_registrations(self) -> None:
        """Leave the registries, which may be the container's own, as they were found when the server stops."""
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
        """Tell clients of everything that changes in the registries."""
        roles = self.roles
        for kind, registry in _LISTED.items():
            changed = partial(subscriptions.list_changed, kind)
            self._undo.callback(getattr(roles, registry).on_change(changed))
        self._undo.callback(roles.resource_registry.on_update(subscriptions.updated))

    def _check_apps(self) -> None:
        """Make sure that the page which a tool names is there."""
        missing = [
            f"Tool {tool.name!r} names the page {link.resource_uri!r}, but there is no such resource"
            for tool in self.roles.tools
            if (link := app_link(tool.app)) is not None and self.resources.find(link.resource_uri) is None
        ]
        if missing:
            raise ConfigurationError(*missing)


async def _finish(outcome: Any) -> None:
    if inspect.isawaitable(outcome):
        await outcome
