"""The target of a command: a container and its settings."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import typer
from dependency_injector import containers

from axolotl_cli.options import FileOptions
from axolotl_cli.text import one_line, print_status
from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost
from axolotl_server.hosting.container_loading import import_path, load_container
from axolotl_server.settings.environment import read_env_file
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings, find_file, read_settings_file

STARTER: Final = "axolotl_examples.starter:Container"
"""The container with example tools."""
_WITHOUT_CONTAINER: Final = (
    "has no container. A container passes tools what they need, and has settings and other roles: write class "
    "Container(containers.DeclarativeContainer) with tools = providers.List(providers.Singleton(MyTool))"
)
_DEFAULT: Final = "-"
_DEV_PROFILE: Final = "dev"
_NOT_IN_DEV: Final = ("auth", "telemetry", "log")
"""Sections that are meant for production, unless the profile of the development server has them too."""

_log: Final = logging.getLogger("axolotl")


class ChosenTarget(msgspec.Struct, frozen=True):
    """A container, and the flags and files that it is started with."""

    name: str
    """The import path of the container, or its file; empty if nothing names one and none is required."""
    file: FileSettings
    toolsets: tuple[str, ...] = ()
    flags: Mapping[str, Any] = msgspec.field(default_factory=dict)
    argument: str | None = None
    """The target on the command line, as seen from the directory of the settings file."""
    files: FileOptions = FileOptions()
    """The files and the profile on the command line, with absolute paths."""

    @property
    def files_as_text(self) -> list[str | None]:
        """The files and the profile as JSON, for another process."""
        return [None if one is None else str(one) for one in self.files]

    @property
    def settings(self) -> ServerSettings:
        """The settings without those of the container, which is not loaded yet."""
        return load_settings(flags=self.flags, file=self.file)

    def load(
        self,
        adapt: Callable[[ServerSettings], ServerSettings] | None = None,
        *,
        is_audited: bool = True,
        is_first: bool = True,
        container: containers.Container | None = None,
    ) -> ServerHost:
        """Import the container, unless it is given, and prepare a server; `adapt` changes its settings last."""
        container = self.load_container(is_first=is_first) if container is None else container
        host = ServerHost(
            container, flags=self.flags, file=self.file, toolsets=self.toolsets, adapt=adapt, is_audited=is_audited
        )
        host.target = self.name
        return host

    def load_container(self, *, is_first: bool = True) -> containers.Container:
        """Import the container; unless another process has done so before, say what a module without one lacks."""
        container = load_container(self.name)
        if is_first and not import_path(self.name).attribute:
            if self.settings.log.format == "json":
                _log.info("%s %s", self.name, _WITHOUT_CONTAINER)
            else:
                print_status(typer.style(one_line(f"{self.name} {_WITHOUT_CONTAINER}"), dim=True))
        return container


def resolve_target(
    target: str | None,
    toolsets: Sequence[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    files: FileOptions | None = None,
    *,
    is_required: bool = True,
    is_dev: bool = False,
) -> ChosenTarget:
    """Complete the command line with the environment and the files of the project.

    If the settings file is in a parent directory, the process goes there, so that relative paths in the settings have
    one meaning. Paths on the command line and in the environment are relative to the directory before that. Raises a
    ConfigurationError if a target is required and nothing names one.
    """
    named = os.environ.get("AXOLOTL_TARGET") if target == _DEFAULT else target
    files = _with_variables(files or FileOptions())
    settings = find_file(Path.cwd()) if files.settings is None else read_settings_file(files.settings)
    if settings.path is not None and settings.path.parent != Path.cwd():
        named = _seen_from(settings.path.parent, named)
        os.chdir(settings.path.parent)
    env_path = files.env_file or (Path(".env").absolute() if Path(".env").is_file() else None)
    env_file = None if env_path in (None, Path(os.devnull)) else read_env_file(env_path)
    variables = env_file.variables if env_file is not None else {}
    files = files._replace(profile=files.profile or variables.get("AXOLOTL_PROFILE") or None)
    usual = _DEV_PROFILE if is_dev and _DEV_PROFILE in settings.profiles else None
    file = settings.select(files.profile or usual)
    if is_dev:  # development needs no tokens and exports nothing unless its profile says so
        file = file.without(*_NOT_IN_DEV)
    file = msgspec.structs.replace(file, env_file=env_file)
    candidates = (named, variables.get("AXOLOTL_TARGET"), file.target)
    name = next((one for one in candidates if one not in (None, "", _DEFAULT)), None)
    if name is None and is_required:
        raise ConfigurationError(
            "There is no target: name one, pkg.module:Container or path/file.py, or set target in an axolotl.toml here "
            "or in a parent directory; axolotl serve --demo serves example tools"
            if file.path is None
            else f'{file.path} does not name a target: add target = "pkg.module:Container" at its top, or name one on '
            "the command line"
        )
    if name is not None and name.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{name} is the URL of a running server, not a container: use --url {name} with list, call, prompt, read "
            "or inspect"
        )
    words = ",".join(toolsets or [variables.get("AXOLOTL_TOOLSETS") or file.toolset or ""]).split(",")
    names = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    return ChosenTarget(name or "", file, names, flags or {}, named, files)


def _with_variables(files: FileOptions) -> FileOptions:
    """Complete the options with variables; Typer does that too, but workers and other code call without it."""
    env_file = files.env_file or os.environ.get("AXOLOTL_ENV_FILE")
    settings = files.settings or os.environ.get("AXOLOTL_SETTINGS")
    return FileOptions(
        Path(env_file).absolute() if env_file else None,
        Path(settings).absolute() if settings else None,
        files.profile or os.environ.get("AXOLOTL_PROFILE") or None,
    )


def _seen_from(directory: Path, target: str | None) -> str | None:
    """Return the path of a file from another directory than the current one; the names of modules are not paths."""
    is_file = target is not None and (target.endswith(".py") or ".py:" in target)
    return os.path.relpath(target, directory) if target is not None and is_file else target
