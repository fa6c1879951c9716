"""The target of a command: a container and its settings."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
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


class ChosenTarget(msgspec.Struct, frozen=True):
    """A container, and the flags and files that it is started with."""

    name: str
    """The import path of the container, or its file."""
    file: FileSettings
    toolsets: tuple[str, ...] = ()
    flags: Mapping[str, Any] = msgspec.field(default_factory=dict)
    is_explicit: bool = True
    """Whether the command line, the environment or a file names the target."""

    @property
    def settings(self) -> ServerSettings:
        """The settings without those of the container, which is not loaded yet."""
        return load_settings(flags=self.flags, file=self.file)

    @property
    def log_level(self) -> str:
        """The log level until the container is loaded."""
        return self.settings.log_level

    def load(self, adapt: Callable[[ServerSettings], ServerSettings] | None = None) -> ServerHost:
        """Import the container and prepare a server; `adapt` changes its settings last."""
        return ServerHost(self._container(), flags=self.flags, file=self.file, toolsets=self.toolsets, adapt=adapt)

    def _container(self) -> Container:
        try:
            return load_container(self.name)
        except ConfigurationError as error:
            hint = (_STARTER_HINT,) if self.name == _STARTER else ()
            raise ConfigurationError(*error.findings, *hint) from error


def resolve_target(
    target: str | None,
    toolsets: Sequence[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    env_file: Path | None = None,
) -> ChosenTarget:
    """Complete the command line with the environment and the files of the current directory."""
    file = msgspec.structs.replace(find_file(Path.cwd()), env_file=_find_env_file(env_file))
    variables = file.env_file.variables if file.env_file is not None else {}
    named = os.environ.get("AXOLOTL_TARGET") if target == _DEFAULT else target
    candidates = (named, variables.get("AXOLOTL_TARGET"), file.target)
    name = next((one for one in candidates if one not in (None, "", _DEFAULT)), None)
    names = toolsets or [variables.get("AXOLOTL_TOOLSETS") or file.toolset or ""]
    return ChosenTarget(name or _STARTER, file, _split(names), flags or {}, name is not None)


def _find_env_file(named: Path | None) -> EnvFile | None:
    variable = os.environ.get("AXOLOTL_ENV_FILE")
    path = named or (Path(variable) if variable else None)
    if path == Path(os.devnull):
        return None
    if path is not None:
        return read_env_file(path.absolute())
    usual = Path.cwd() / ".env"
    return read_env_file(usual) if usual.is_file() else None


def _split(names: Sequence[str]) -> tuple[str, ...]:
    parts = (part.strip() for name in names for part in name.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
