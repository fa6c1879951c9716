"""Starting a server on trial: every step is taken, whatever the one before it found."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dependency_injector import containers, providers

from axolotl_cli.findings import Finding, Severity, advice_about, stray_overrides
from axolotl_cli.targets import Choice
from axolotl_core.errors import ConfigurationError
from axolotl_core.registry import AnyTool
from axolotl_core.spec import ToolSpec
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
        self.findings: list[Finding] = []
        self.tools: Sequence[AnyTool] = ()

    async def run(self) -> None:
        """Take every step of a start, and then look for what could be better."""
        with self._noting():
            container = load_container(self._choice.target)
            try:
                await self._examine(container)
            finally:
                await _finish(container.shutdown_resources())

    async def _examine(self, container: containers.Container) -> None:
        with self._noting("A resource of the container fails to start"):
            await _finish(container.init_resources())
        settings = await self._settings(container)
        roles = await self._roles(container)
        self.tools = roles.tools
        self.findings += map(_error, faults_of(roles))
        self._compile(roles, settings)
        self.findings += stray_overrides(settings, _names(roles.tools))
