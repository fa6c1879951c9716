"""Sources of settings, their combination, and the origin of each value."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec


class Source(StrEnum):
    """The sources of settings, strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    ENV_FILE = "env_file"
    FILE = "file"
    CONTAINER = "container"
    TOOL = "tool"
    DEFAULT = "default"


_FORMATS: Final = {
    Source.FLAG: "flag {}",
    Source.ENVIRONMENT: "environment {}",
    Source.CONTAINER: "container{}",
    Source.TOOL: "tool attribute{}",
    Source.DEFAULT: "default{}",
}


class Origin(msgspec.Struct, frozen=True):
    """A source and the place in it: the flag, the variable, or the file with its line."""

    source: Source
    place: str = ""

    def __str__(self) -> str:
        if self.source is Source.FLAG and not self.place:
            return "argument"  # code that takes the place of the command line
        return _FORMATS.get(self.source, "{}").format(self.place).strip()


CONTAINER: Final = Origin(Source.CONTAINER)
TOOL: Final = Origin(Source.TOOL)
DEFAULT: Final = Origin(Source.DEFAULT)


def file_name(path: Path) -> str:
    """Return the name of a file relative to the current directory, if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


Keys: TypeAlias = tuple[str | int, ...]
"""The path of a setting, from the top."""

Locate: TypeAlias = Callable[[Keys], Origin]
"""Finds the place of a setting in its source."""


def dotted(keys: Keys) -> str:
    """Write the path of a setting: `http.port`."""
    return ".".join(map(str, keys))


def prefixes(keys: Keys) -> Iterator[Keys]:
    """Yield the keys, then what contains them, the longest first."""
    return (keys[:length] for length in range(len(keys), 0, -1))


class SecretValues(msgspec.Struct, frozen=True):
    """Values that may be secrets, so they are not printed."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class SourceValues(SecretValues, frozen=True):
    """The values of one source."""

    values: Mapping[str, Any]
    locate: Locate
    renamed: Mapping[Keys, Keys] = msgspec.field(default_factory=dict)
    """Settings that the source writes differently, such as `audit.key_file` for `audit.key`."""

    def written(self, keys: Keys) -> Keys:
        """Return the path of a setting as the source writes it."""
        for known in prefixes(keys):
            if known in self.renamed:
                return (*self.renamed[known], *keys[len(known) :])
        return keys

    def origin_of(self, keys: Keys) -> Origin:
        """Find the place of a setting."""
        return self.locate(self.written(keys))


class CombinedValues(SecretValues, frozen=True):
    """The values of several sources, and the source of each."""

    values: dict[str, Any] = msgspec.field(default_factory=dict)
    owners: dict[Keys, SourceValues] = msgspec.field(default_factory=dict)
    """The source that won, for each value. A list is one value."""

    def owner_of(self, keys: Keys) -> SourceValues | None:
        """Return the source of a value, or of the value that contains it."""
        return next((self.owners[known] for known in prefixes(keys) if known in self.owners), None)

    def below(self, keys: Keys) -> list[Keys]:
        """List the values in a table."""
        return [owned for owned in self.owners if owned[: len(keys)] == keys]

    def origin_of(self, keys: Keys) -> Origin:
        """Find the origin of a value, or of the first value in a table."""
        owner = self.owner_of(keys) or next((self.owners[owned] for owned in self.below(keys)), None)
        return DEFAULT if owner is None else owner.origin_of(keys)

    def set(self, keys: Keys, value: Any, source: SourceValues) -> None:
        """Replace a value. An empty table adds nothing to another table."""
        *parents, last = keys
        table: Any = self.values
        for depth, key in enumerate(parents, 1):
            self.owners.pop(keys[:depth], None)
            if not isinstance(table.get(key), dict):
                table[key] = {}
            table = table[key]
        if isinstance(table.get(last), dict) and table[last]:
            if value == {}:
                return
            for owned in self.below(keys):
                del self.owners[owned]
        table[last] = value
        self.owners[keys] = source


def combine(weakest_first: Iterable[SourceValues]) -> CombinedValues:
    """Combine sources value by value: the strongest source that sets a value wins."""
    combined = CombinedValues()
    for source in weakest_first:
        for keys, value in _leaves(source.values):
            combined.set(keys, value, source)
    return combined


def _leaves(table: Mapping[str, Any], keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield (*keys, key), value
        elif not value:
            yield (*keys, key), {}  # an empty table is a value: it can be wrong because of what it lacks
        else:
            yield from _leaves(value, (*keys, key))
