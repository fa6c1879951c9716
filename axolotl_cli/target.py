"""What a command works on: a container with its settings, chosen by the command line, the environment or a file."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dependency_injector.containers import Container

from axolotl_core.errors import ConfigurationError
from axolotl_server.configuration.environment import EnvFile, read_env_file
from axolotl_server.configuration.loading import load_settings
from axolotl_server.configuration.settings_file import FileSettings, find_file
from axolotl_server.host import ServerHost
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.settings.server import ServerSettings

_STARTER: Final = "axolotl_examples.starter:Container"
_STARTER_HINT: Final = "Name a target, or install what the starter set needs: pip install 'axolotl-mcp[examples]'"
_DEFAULT: Final = "-"


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """A target and the circumstances it is to be started in."""

    target: str
    file: FileSettings
    toolsets: tuple[str, ...] = ()
    flags: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = True
    """Whether somebody named the target."""

    @property
    def settings(self) -> ServerSettings:
        """What holds for the time before the container has been asked.

        Raises:
            ConfigurationError: if the settings are wrong.
        """
        return load_settings(flags=self.flags, file=self.file)

    @property
    def log_level(self) -> str:
        """The level for that time.

        Raises:
            ConfigurationError: if the settings are wrong.
        """
        return self.settings.log_level

    def load(self, adapt: Callable[[ServerSettings], ServerSettings] | None = None) -> ServerHost:
        """Import the target and prepare a server around it; `adapt` has the last word on its settings.

        Raises:
            ConfigurationError: if it names no container.
        """
        return ServerHost(self._container(), flags=self.flags, file=self.file, toolsets=self.toolsets, adapt=adapt)

    def _container(self) -> Container:
        try:
            return load_container(self.target)
        except ConfigurationError as error:
            hint = (_STARTER_HINT,) if self.target == _STARTER else ()
            raise ConfigurationError(*error.findings, *hint) from error


def resolve_target(
    target: str | None,
    toolsets: Sequence[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    env_file: Path | None = None,
) -> ChosenTarget:
    """Complete what was said on the command line by the environment and the files of the current directory.

    Raises:
        ConfigurationError: if such a file cannot be read.
    """
    file = replace(find_file(Path.cwd()), env_file=_find_env_file(env_file))
    more = file.env_file.variables if file.env_file is not None else {}
    named = os.environ.get("AXOLOTL_TARGET") if target == _DEFAULT else target
    candidates = (named, more.get("AXOLOTL_TARGET"), file.target)
    chosen = next((one for one in candidates if one not in (None, "", _DEFAULT)), None)
    wanted = toolsets or [more.get("AXOLOTL_TOOLSETS") or file.toolset or ""]
    return ChosenTarget(chosen or _STARTER, file, _separated(wanted), flags or {}, chosen is not None)


def _find_env_file(named: Path | None) -> EnvFile | None:
    """Read the file of variables that somebody named, else `.env` if there is one."""
    variable = os.environ.get("AXOLOTL_ENV_FILE")
    path = named or (Path(variable) if variable else None)
    if path == Path(os.devnull):
        return None
    if path is not None:
        return read_env_file(path.absolute())
    usual = Path.cwd() / ".env"
    return read_env_file(usual) if usual.is_file() else None


def _separated(names: Sequence[str]) -> tuple[str, ...]:
    parts = (part.strip() for name in names for part in name.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
