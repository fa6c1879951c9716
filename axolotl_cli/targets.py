"""What a command works on: a container with its settings, chosen by the command line, the environment or a file."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dependency_injector.containers import Container

from axolotl_core.errors import ConfigurationError
from axolotl_server.configuration import FileSettings, find_file, load_settings
from axolotl_server.host import ServerHost
from axolotl_server.loading import load_container

__all__ = ["Choice", "choose"]

_STARTER: Final = "axolotl_examples.starter:Container"
_STARTER_HINT: Final = "Name a target, or install what the starter set needs: pip install 'axolotl-mcp[examples]'"
_DEFAULT: Final = "-"


@dataclass(frozen=True, slots=True)
class Choice:
    """A target and the circumstances it is to be started in."""

    target: str
    file: FileSettings
    toolsets: tuple[str, ...] = ()
    flags: Mapping[str, Any] = field(default_factory=dict)

    @property
    def log_level(self) -> str:
        """The level for the time before the container has been asked.

        Raises:
            ConfigurationError: if the settings are wrong.
        """
        return load_settings(flags=self.flags, file=self.file).log_level

    def load(self) -> ServerHost:
        """Import the target and prepare a server around it.

        Raises:
            ConfigurationError: if it names no container.
        """
        return ServerHost(self._container(), flags=self.flags, file=self.file, toolsets=self.toolsets)

    def _container(self) -> Container:
        try:
            return load_container(self.target)
        except ConfigurationError as error:
            hint = (_STARTER_HINT,) if self.target == _STARTER else ()
            raise ConfigurationError(*error.findings, *hint) from error


def choose(target: str | None, toolsets: Sequence[str] | None = None, flags: Mapping[str, Any] | None = None) -> Choice:
    """Complete what was said on the command line by the environment and the settings file of the current directory.

    Raises:
        ConfigurationError: if that file cannot be read.
    """
    file = find_file(Path.cwd())
    named = os.environ.get("AXOLOTL_TARGET") if target == _DEFAULT else target
    wanted = toolsets or ([file.toolset] if file.toolset else [])
    chosen = file.target if named in (None, "", _DEFAULT) else named
    return Choice(chosen or _STARTER, file, _separated(wanted), flags or {})


def _separated(names: Sequence[str]) -> tuple[str, ...]:
    parts = (part.strip() for name in names for part in name.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
