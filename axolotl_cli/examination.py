"""Starting a server on trial: every step is taken, whatever the one before it found."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dependency_injector import containers, providers

from axolotl_cli.findings import Finding, Severity, advice_about, stray_overrides
from axolotl_cli.targets import Choice
from axolotl_core.errors import ConfigurationError
from axolotl_core.layer import ILayer
from axolotl_core.registry import AnyTool
from axolotl_core.tool import ITool
from axolotl_server.configuration import load_settings
from axolotl_server.container import ServerContainer
from axolotl_server.loading import load_container
from axolotl_server.roles import Roles, faults_of, make_roles, resolve_settings
from axolotl_server.settings import ServerSettings

__all__ = ["Examination"]


class Examination:
    """Collects all findings about a choice."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._findings: list[Finding] = []
        self.tools: tuple[AnyTool, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What was found, errors first, each once."""
        return sorted(dict.fromkeys(self._findings), key=lambda finding: finding.severity)

    async def run(self) -> None:
        """Take every step of a start, and then look for what could be better."""
        with self._noting("The target fails"):
            container = load_container(self._choice.target)
            with self._noting("A resource of the container fails to start"):
                await _finish(container.init_resources())
            await self._examine(container)
            with self._noting("A resource of the container fails to stop"):
                await _finish(container.shutdown_resources())

    async def _examine(self, container: containers.Container) -> None:
        settings = await self._settings(container)
        roles = await self._roles(container)
        self._findings += map(_error, faults_of(roles))
        self.tools = tuple(tool for tool in roles.tools if _is_definable(tool))
        self._compile(roles, settings)
        self._findings += stray_overrides(settings, [tool.name for tool in self.tools])

    async def _settings(self, container: containers.Container) -> ServerSettings:
        said: Any = {}
        with self._noting("The role settings fails"):
            said = await resolve_settings(container)
        with self._noting("The settings fail"):
            return load_settings(flags=self._choice.flags, file=self._choice.file, container=said)
        return ServerSettings.model_construct()

    async def _roles(self, container: containers.Container) -> Roles:
        """Make the tools; where the chosen tool sets are wrong, all of them."""
        for chosen in (self._choice.toolsets, ()):
            with self._noting("A role of the container fails"):
                return await make_roles(container, chosen)
        return Roles()

    def _compile(self, roles: Roles, settings: ServerSettings) -> None:
        candidates: tuple[Any, ...] = roles.layers
        layers = tuple(layer for layer in candidates if isinstance(layer, ILayer))
        server = ServerContainer(settings=providers.Object(settings), roles=providers.Object(Roles(layers=layers)))
        for tool in self.tools:
            if settings.tools.overrides_for(tool.name).enabled:
                with self._noting(f"Tool {tool.name!r} fails"):
                    self._findings += advice_about(server.binder().bind_tool(tool).spec)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        """Note what goes wrong, and go on."""
        try:
            yield
        except ConfigurationError as error:
            self._findings += map(_error, error.findings)
        except Exception as error:
            self._findings.append(_error(f"{what}: {type(error).__name__}: {error}"))


def _is_definable(tool: Any) -> bool:
    return isinstance(tool, ITool) and isinstance(getattr(tool, "name", None), str) and hasattr(tool, "input_model")


def _error(message: str) -> Finding:
    return Finding(Severity.ERROR, message)


async def _finish(outcome: Any) -> None:
    if inspect.isawaitable(outcome):
        await outcome
