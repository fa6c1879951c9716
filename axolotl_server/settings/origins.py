"""Values of settings by their paths, with the place in the source that each comes from, and their combination."""

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


class Origin(msgspec.Struct, frozen=True):
    """A source and the place in it: the flag, the variable, or the file with its line."""

    source: Source
    place: str = ""

    def __str__(self) -> str:
        match self.source:
            case Source.FLAG:  # or code that takes the place of the command line
                return f"flag {self.place}" if self.place else "argument"
            case Source.ENVIRONMENT:
                return f"environment {self.place}"
            case Source.TOOL:
                return "tool attribute"
        return self.place or self.source


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


class SourcedValue(SecretValues, frozen=True):
    """The value of a setting, and where it comes from. A list is one value."""

    value: Any
    written: Keys
    """The path as the source writes it, such as `audit.key_file` for `audit.key`."""
    locate: Locate

    @property
    def origin(self) -> Origin:
        """The origin of the value."""
        return self.locate(self.written)


FlatValues: TypeAlias = dict[Keys, SourcedValue]
"""Values by path. A table is not a value unless it is empty."""


def flatten(table: Mapping[str, Any], locate: Locate, above: Keys = ()) -> FlatValues:
    """List the values of a source."""
    values: FlatValues = {}
    for key, value in table.items():
        keys = (*above, key)
        if isinstance(value, Mapping) and value:
            values |= flatten(value, locate, keys)
        else:
            values[keys] = SourcedValue({} if isinstance(value, Mapping) else value, keys, locate)
    return values


def nest(values: FlatValues) -> dict[str, Any]:
    """Write values as tables."""
    tables: dict[str, Any] = {}
    for (*above, last), sourced in values.items():
        table: Any = tables
        for key in above:
            table = table.setdefault(key, {})
        table[last] = sourced.value
    return tables


def combine(weakest_first: Iterable[FlatValues]) -> FlatValues:
    """Combine sources value by value: the strongest source that sets a value wins."""
    combined: FlatValues = {}
    tables: set[Keys] = set()
    for source in weakest_first:
        for keys, sourced in source.items():
            replaced = inside(combined, keys) if keys in tables else []
            if replaced and sourced.value == {}:
                continue  # an empty table adds nothing to another table
            above = tuple(prefixes(keys))[1:]
            for other in (*above, *replaced):
                combined.pop(other, None)
            combined[keys] = sourced
            tables.update(above)
    return combined


def inside(values: FlatValues, keys: Keys) -> list[Keys]:
    """List the values in a table."""
    return [known for known in values if known[: len(keys)] == keys]


def origin_in(values: FlatValues, keys: Keys) -> Origin | None:
    """Find the origin of a value or of a part of it, such as an item of a list."""
    for known in prefixes(keys):
        if known in values:
            return values[known].locate((*values[known].written, *keys[len(known) :]))
    return None
