"""The target of a command: a container and its settings."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_server.configuration.environment import EnvFile, read_env_file
from axolotl_server.configuration.loading import load_settings
from axolotl_server.configuration.settings_file import FileSettings, find_file
from axolotl_server.host import ServerHost
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.settings.server import ServerSettings

STARTER: Final = "axolotl_examples.starter:Container"
"""The container with example tools."""
_DEFAULT: Final = "-"


class ChosenTarget(msgspec.Struct, frozen=True):
    """A container, and the flags and files that it is started with."""

    name: str
    """The import path of the container, or its file; empty if nothing names one and none is required."""
    file: FileSettings
    toolsets: tuple[str, ...] = ()
    flags: Mapping[str, Any] = msgspec.field(default_factory=dict)
    argument: str | None = None
    """The target on the command line, as seen from the directory of the settings file."""
    env_file: Path | None = None
    """The env file on the command line."""

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
        container = load_container(self.name)
        return ServerHost(container, flags=self.flags, file=self.file, toolsets=self.toolsets, adapt=adapt)


def resolve_target(
    target: str | None,
    toolsets: Sequence[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    env_file: Path | None = None,
    *,
    is_required: bool = True,
) -> ChosenTarget:
    """Complete the command line with the environment and the files of the project.

    If the settings file is in a parent directory, the process goes there, so that relative paths in the settings have
    one meaning. Paths on the command line and in the environment are relative to the directory before that. Raises a
    ConfigurationError if a target is required and nothing names one.
    """
    named = os.environ.get("AXOLOTL_TARGET") if target == _DEFAULT else target
    variable = os.environ.get("AXOLOTL_ENV_FILE")
    env_file = env_file or (Path(variable) if variable else None)
    env_file = None if env_file is None else env_file.absolute()
    settings = find_file(Path.cwd())
    if settings.path is not None and settings.path.parent != Path.cwd():
        named = _seen_from(settings.path.parent, named)
        os.chdir(settings.path.parent)
    file = msgspec.structs.replace(settings, env_file=_find_env_file(env_file))
    variables = file.env_file.variables if file.env_file is not None else {}
    candidates = (named, variables.get("AXOLOTL_TARGET"), file.target)
    name = next((one for one in candidates if one not in (None, "", _DEFAULT)), None)
    if name is None and is_required:
        raise _missing_target(file.path)
    names = toolsets or [variables.get("AXOLOTL_TOOLSETS") or file.toolset or ""]
    return ChosenTarget(name or "", file, _split(names), flags or {}, named, env_file)


def _missing_target(file: Path | None) -> ConfigurationError:
    if file is not None:
        return ConfigurationError(
            f'{file} does not name a target: add target = "pkg.module:Container" at its top, or name one on the '
            "command line"
        )
    return ConfigurationError(
        "There is no target: name one, pkg.module:Container or path/file.py, or set target in an axolotl.toml here or "
        "in a parent directory; axolotl serve --demo serves example tools"
    )


def _seen_from(directory: Path, target: str | None) -> str | None:
    """Give the path of a file from another directory than the current one; the names of modules are not paths."""
    is_file = target is not None and (target.endswith(".py") or ".py:" in target)
    return os.path.relpath(target, directory) if target is not None and is_file else target


def _find_env_file(path: Path | None) -> EnvFile | None:
    if path == Path(os.devnull):
        return None
    if path is not None:
        return read_env_file(path)
    usual = Path.cwd() / ".env"
    return read_env_file(usual) if usual.is_file() else None


def _split(names: Sequence[str]) -> tuple[str, ...]:
    parts = (part.strip() for name in names for part in name.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
