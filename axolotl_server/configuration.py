"""Where settings come from: flags, the environment, a file, the container; the first that speaks is heard."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError

from axolotl_core.errors import ConfigurationError
from axolotl_core.names import nearest
from axolotl_server.settings import ServerSettings
from axolotl_server.settings_section import Section
from axolotl_server.tool_settings import ToolOverrides, ToolsSettings

__all__ = ["FileSettings", "find_file", "load_settings"]


_EMPTY_SECTIONS: Final[Mapping[str, Any]] = {
    name: {}
    for name, field in ServerSettings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""A section that is there, if empty, is made by the validator of them all; a missing one would need its own made."""


class FileSettings(BaseModel):
    """What a settings file says: the target to serve and the settings of the server."""

    path: Path | None = None
    target: str | None = None
    toolset: str | None = None
    values: dict[str, Any] = {}


def find_file(directory: Path) -> FileSettings:
    """Read `axolotl.toml`, else `[tool.axolotl]` of `pyproject.toml`, in a directory.

    Raises:
        ConfigurationError: if the file is no TOML, or what it says is no table.
    """
    own, project = directory / "axolotl.toml", directory / "pyproject.toml"
    if own.is_file():
        return _split(own, _read(own))
    if project.is_file():
        table = _read(project).get("tool", {}).get("axolotl")
        if table is not None and not isinstance(table, dict):
            raise ConfigurationError(f"{project}: tool.axolotl must be a table")
        if table is not None:
            return _split(project, table)
    return FileSettings()


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    file: FileSettings | None = None,
    container: Mapping[str, Any] | None = None,
) -> ServerSettings:
    """Weigh all sources and check the outcome.

    Raises:
        ConfigurationError: if a value is wrong or a key unknown; it names the place and the nearest right key.
    """
    file = file or FileSettings()
    try:
        environment = _Environment(ServerSettings)()
        merged = _merge(_EMPTY_SECTIONS, *map(_folded, (container or {}, file.values, environment, flags or {})))
        return ServerSettings.model_validate(merged)
    except SettingsError as error:
        raise ConfigurationError(
            f"A setting in the environment cannot be read (lists and tables are written as JSON): {error}"
        ) from error
    except ValidationError as error:
        source = f" (file: {file.path})" if file.path else ""
        raise ConfigurationError(*(_describe(finding) + source for finding in error.errors())) from None


class _Environment(EnvSettingsSource):
    """Leaves `AXOLOTL_TOOLSETS` to the command line, where it names the tool sets to serve."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name: value for name, value in super()._load_env_vars().items() if name != "axolotl_toolsets"}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error


def _split(path: Path, table: dict[str, Any]) -> FileSettings:
    values = dict(table)
    target, toolset = values.pop("target", None), values.pop("toolset", None)
    for key, value in (("target", target), ("toolset", toolset)):
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{path}: {key} must be a string")
    return FileSettings(path=path, target=target, toolset=toolset, values=values)


def _folded(layer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fold the case of the tools' names: the environment has none, and all sources must mean the same tool."""
    tools = layer.get("tools")
    if not isinstance(tools, Mapping):
        return layer
    return {**layer, "tools": {name.casefold(): said for name, said in tools.items()}}


def _merge(*weakest_first: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for layer in weakest_first:
        for key, value in layer.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = _merge(merged[key], value) if both else value
    return merged


def _describe(finding: Any) -> str:
    place = ".".join(map(str, finding["loc"]))
    problem = " is unknown" if finding["type"] == "extra_forbidden" else f": {finding['msg']}"
    *section, key = map(str, finding["loc"])
    near = nearest(key, _known_keys(section))
    return f"Setting {place}{problem}" + (f"; did you mean {near!r}?" if near and near != key else "")


def _known_keys(section: Sequence[str]) -> list[str]:
    model: Any = ServerSettings
    for part in section:
        field = getattr(model, "model_fields", {}).get(part)
        model = ToolOverrides if field is None and model is ToolsSettings else getattr(field, "annotation", None)
    return list(getattr(model, "model_fields", {}))
