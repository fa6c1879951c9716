"""A server's life: start everything, serve, stop everything in reverse."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from dependency_injector import containers, providers

from axolotl_core.errors import ConfigurationError
from axolotl_core.registry import ToolRegistry
from axolotl_server.catalogue import Catalogue
from axolotl_server.configuration import FileSettings, load_settings
from axolotl_server.container import ServerContainer
from axolotl_server.handler import DefaultHandler
from axolotl_server.roles import Roles, resolve_roles, resolve_settings
from axolotl_server.settings import ServerSettings

__all__ = ["ServerHost"]


class ServerHost:
    """Composes a server around a user's container; the container leaves the call path when it has started."""

    settings: ServerSettings
    roles: Roles
    registry: ToolRegistry
    catalogue: Catalogue
    handler: DefaultHandler

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
        """Let go of threads and of the registry, and shut the container's resources down."""
        if self._server is not None:
            self._server.threads().close()
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
        server = self._server = ServerContainer(
            settings=providers.Object(self.settings),
            tools=providers.Object(self.roles.tools),
            user_layers=providers.Object(self.roles.layers),
            user_registry=providers.Object(self.roles.registry),
            name_rule=providers.Object(self.roles.name_rule),
        )
        # The registry may be the container's own: when the server stops, it shall be as it was found.
        added = [tool.name for tool in self.roles.tools if tool.name not in self.roles.registry]
        self._undo.callback(self.roles.registry.unregister_range, added)
        self.registry, self.catalogue, self.handler = server.registry(), server.catalogue(), server.handler()
        self._undo.callback(self.catalogue.close)
        self._undo.callback(self.registry.on_change(self.handler.announce_tools))


async def _finish(outcome: Any) -> None:
    if inspect.isawaitable(outcome):
        await outcome
