"""The settings file: `axolotl.toml`, or a table of `pyproject.toml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.names import did_you_mean
from axolotl_server.settings.environment import EnvFile
from axolotl_server.settings.origins import FlatValues, Keys, Origin, SecretValues, Source, file_name, flatten
from axolotl_server.settings.secret_files import is_trusted

_PROJECT_TABLE: Final = ("tool", "axolotl")
_OWN_KEYS: Final = ("target", "toolset")
_PROFILES: Final = "profile"


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
    profiles: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """The tables `[profile.<name>]`, whose values override the others if the profile is selected."""
    profile: str | None = None
    """The name of the selected profile."""

    @property
    def toolset_names(self) -> tuple[str, ...]:
        """The tool sets that the file selects."""
        names = (name.strip() for name in (self.toolset or "").split(","))
        return tuple(name for name in names if name)

    @property
    def sources(self) -> tuple[FlatValues, ...]:
        """The values of the file, then those of the selected profile."""
        base = flatten(self.values, self.locate)
        if self.profile is None:
            return (base,)
        own = {key: value for key, value in self.profiles[self.profile].items() if key not in _OWN_KEYS}
        return base, flatten(own, self._locate_in_profile)

    def select(self, profile: str | None) -> "FileSettings":
        """Select a profile, with its target and tool sets; raises a ConfigurationError if it does not exist."""
        if profile is None:
            return self
        if profile not in self.profiles:
            raise ConfigurationError(self._unknown_profile(profile))
        own = self.profiles[profile]
        target, toolset = own.get("target", self.target), own.get("toolset", self.toolset)
        return msgspec.structs.replace(self, profile=profile, target=target, toolset=toolset)

    def without(self, *sections: str) -> "FileSettings":
        """Leave out sections, except those that the selected profile has too."""
        kept = {} if self.profile is None else self.profiles[self.profile]
        dropped = {name for name in sections if name not in kept}
        return msgspec.structs.replace(
            self, values={key: value for key, value in self.values.items() if key not in dropped}
        )

    def locate(self, keys: Keys) -> Origin:
        """Find the line of a setting."""
        if self.path is None:
            return Origin(Source.FILE, "file")
        from axolotl_server.settings.mistakes import line_of

        line = line_of(self.path, (*self.table, *keys))
        return Origin(Source.FILE, file_name(self.path) + (f":{line}" if line else ""))

    def _locate_in_profile(self, keys: Keys) -> Origin:
        place = self.locate((_PROFILES, str(self.profile), *keys)).place
        return Origin(Source.FILE, f"{place}, profile {self.profile}")

    def _unknown_profile(self, name: str) -> str:
        place = "The settings mapping" if self.path is None else file_name(self.path)
        if self.profiles:
            hint = did_you_mean(name, self.profiles, f"; it has {', '.join(sorted(self.profiles))}")
            return f"{place} has no profile {name!r}{hint}"
        if self.path is None and not self.values:
            return f"Profile {name!r} does not exist: no axolotl.toml was found here or in a parent directory"
        return f"{place} has no profile {name!r}: add a table [{_PROFILES}.{name}]"


def find_file(directory: Path) -> FileSettings:
    """Read `axolotl.toml`, or otherwise `[tool.axolotl]` of `pyproject.toml`, in a directory or the nearest parent.

    A file in a parent directory names code to import, so it is ignored if it belongs to another user than this one or
    root. Raises a ConfigurationError if the file is not valid.
    """
    for place in (directory, *directory.parents):
        for path in (place / "axolotl.toml", place / "pyproject.toml"):
            if path.is_file() and (place == directory or is_trusted(path.stat())):
                found = _read(path)
                if found is not None:
                    return found
    return FileSettings()


def read_settings_file(path: Path) -> FileSettings:
    """Read a settings file of any name; raises a ConfigurationError if it is missing or not valid.

    In a `pyproject.toml`, the settings are in `[tool.axolotl]`.
    """
    return _read(path) or FileSettings(path, table=_PROJECT_TABLE)


def _read(path: Path) -> FileSettings | None:
    """Read a settings file; None if it is that of a project without settings."""
    import tomllib  # many servers have no such file

    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    place = _PROJECT_TABLE if path.name == "pyproject.toml" else ()
    for key in place:
        table = table.get(key) if isinstance(table, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigurationError(f"{path}: tool.axolotl must be a table")
    return msgspec.structs.replace(split_settings(table, str(path)), path=path, table=place)


def split_settings(table: Mapping[str, Any], name: str = "settings") -> FileSettings:
    """Separate settings from the keys that are not settings: target, tool sets and profiles.

    Raises a ConfigurationError, with the name of the source, if one of these has the wrong type.
    """
    values = dict(table)
    profiles = values.pop(_PROFILES, {})
    tables = {f"{_PROFILES}.{one}": inner for one, inner in profiles.items()} if isinstance(profiles, Mapping) else {}
    wrong = [place for place, inner in {_PROFILES: profiles, **tables}.items() if not isinstance(inner, Mapping)]
    findings = [f"{name}: {place} must be a table" for place in wrong]
    for place, inner in {"": values, **tables}.items():
        keys = [key for key in _OWN_KEYS if isinstance(inner, Mapping) and not isinstance(inner.get(key, ""), str)]
        findings += [f"{name}: {f'{place}.{key}'.lstrip('.')} must be a string" for key in keys]
    if findings:
        raise ConfigurationError(*findings)
    target, toolset = values.pop("target", None), values.pop("toolset", None)
    return FileSettings(None, target, toolset, values, profiles=profiles)
