"""The settings file: `axolotl.toml`, or a table of `pyproject.toml`."""

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_server.configuration.environment import EnvFile
from axolotl_server.configuration.origins import Keys, Origin, SecretValues, Source, file_name

_PROJECT_TABLE = ("tool", "axolotl")


class FileSettings(SecretValues, frozen=True):
    """The content of the settings file and of the environment file."""

    path: Path | None = None
    target: str | None = None
    toolset: str | None = None
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)
    table: tuple[str, ...] = ()
    """The table of the file that contains the settings."""
    env_file: EnvFile | None = None
    """The variables of a `.env` file, if one is used."""

    def locate(self, keys: Keys) -> Origin:
        """Find the line of a setting."""
        if self.path is None:
            return Origin(Source.FILE, "file")
        from axolotl_server.configuration.toml_lines import line_of

        line = line_of(self.path, (*self.table, *keys))
        return Origin(Source.FILE, file_name(self.path) + (f":{line}" if line else ""))


def find_file(directory: Path) -> FileSettings:
    """Read `axolotl.toml`, or otherwise `[tool.axolotl]` of `pyproject.toml`, in a directory or the nearest parent.

    A file in a parent directory names code to import, so it is ignored if it belongs to another user than this one or
    root. Raises a ConfigurationError if the file is not valid.
    """
    for place in (directory, *directory.parents):
        is_trusted = _is_own if place != directory else Path.is_file
        own, project = place / "axolotl.toml", place / "pyproject.toml"
        found = _split(own, _read(own)) if is_trusted(own) else _in_project(project) if is_trusted(project) else None
        if found is not None:
            return found
    return FileSettings()


def _is_own(path: Path) -> bool:
    """Whether this is a file of this user or root."""
    if not path.is_file():
        return False
    return sys.platform == "win32" or path.stat().st_uid in (0, os.getuid())


def _in_project(path: Path) -> FileSettings | None:
    tools = _read(path).get("tool")
    table = tools.get("axolotl") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(f"{path}: tool.axolotl must be a table")
    return None if table is None else _split(path, table, _PROJECT_TABLE)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error


def _split(path: Path, table: dict[str, Any], place: tuple[str, ...] = ()) -> FileSettings:
    values = dict(table)
    target, toolset = values.pop("target", None), values.pop("toolset", None)
    for key, value in (("target", target), ("toolset", toolset)):
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{path}: {key} must be a string")
    return FileSettings(path, target, toolset, values, place)
