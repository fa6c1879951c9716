"""Values with those who said them, in the form of the settings: tables of tables, each source heard in its turn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias, Union


class Source(StrEnum):
    """Who can say something about a setting; each beats all below it."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    ENV_FILE = "env_file"
    FILE = "file"
    CONTAINER = "container"
    TOOL = "tool"
    DEFAULT = "default"


_WORDS: Final = {
    Source.FLAG: "flag {}",
    Source.ENVIRONMENT: "environment {}",
    Source.CONTAINER: "container{}",
    Source.TOOL: "tool attribute{}",
    Source.DEFAULT: "default{}",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """A layer, and the place in it: the flag, the variable, or the file with its line."""

    layer: Source
    place: str = ""

    def __str__(self) -> str:
        if self.layer is Source.FLAG and not self.place:
            return "argument"  # of code that stands where the command line would
        return _WORDS.get(self.layer, "{}").format(self.place).strip()


CONTAINER: Final = Origin(Source.CONTAINER)
TOOL: Final = Origin(Source.TOOL)
DEFAULT: Final = Origin(Source.DEFAULT)


def file_name(path: Path) -> str:
    """Write the name of a file as someone in the current directory would."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


Keys: TypeAlias = tuple[str | int, ...]
"""The way to a setting, from the top."""

Locate: TypeAlias = Callable[[Keys], Origin]
"""Finds the place where a source says something."""

Tree: TypeAlias = dict[str, Union["SourcedValue", "Tree"]]


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value, and where it was said; a list is one value, though the tables in it are trees."""

    value: Any = field(repr=False)  # it may be a secret
    keys: Keys
    """As the source has them: a secret that is read from a file has another key there."""
    locate: Locate = field(repr=False)

    def origin(self, below: Keys = ()) -> Origin:
        """Say where it came from, or something inside of it."""
        return self.locate((*self.keys, *below))


def tree_of(values: Mapping[str, Any], locate: Locate, keys: Keys = ()) -> Tree:
    """Note for every value of a source that it is the source's."""
    tree: Tree = {}
    for key, value in values.items():
        place = (*keys, key)
        tree[key] = tree_of(value, locate, place) if _is_table(value) else SourcedValue(value, place, locate)
    return tree


def merge(*weakest_first: Tree) -> Tree:
    """Weigh sources key by key; the last that says something about a key is heard."""
    merged: Tree = {}
    for tree in weakest_first:
        for key, node in tree.items():
            under = merged.get(key)
            if not isinstance(under, dict):
                merged[key] = node
            elif isinstance(node, dict):
                merged[key] = merge(under, node)
            elif node.value != {}:  # an empty table adds nothing to another
                merged[key] = node
    return merged


def _is_table(value: Any) -> bool:
    """An empty table is a value: who said it may be asked for what it lacks."""
    return isinstance(value, Mapping) and bool(value)


def reach(tree: Tree, keys: Keys) -> tuple[SourcedValue | Tree, Keys]:
    """Follow keys as far as they lead; gives what is there, and the keys that are left."""
    node: SourcedValue | Tree = tree
    for index, key in enumerate(keys):
        inner = _inside(node, key)
        if inner is None:
            return node, keys[index:]
        node = inner
    return node, ()


def _inside(node: SourcedValue | Tree, key: Any) -> SourcedValue | Tree | None:
    if not isinstance(node, SourcedValue):
        return node.get(key)
    items = node.value if isinstance(node.value, list) and isinstance(key, int) else []
    table = items[key] if key in range(len(items)) else None
    return table if isinstance(table, dict) else None


def leaves(node: SourcedValue | Tree) -> Iterator[SourcedValue]:
    """Give all values in a tree."""
    if isinstance(node, SourcedValue):
        yield node
        return
    for below in node.values():
        yield from leaves(below)
