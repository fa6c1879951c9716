"""Values with those who said them, in the form of the settings: tables of tables, each source heard in its turn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, Union

from axolotl_server.configuration.origins import Origin

__all__ = ["Keys", "Locate", "Said", "Tree", "leaves", "merge", "reach", "tree_of"]

Keys: TypeAlias = tuple[str | int, ...]
"""The way to a setting, from the top."""

Locate: TypeAlias = Callable[[Keys], Origin]
"""Finds the place where a source says something."""

Tree: TypeAlias = dict[str, Union["Said", "Tree"]]


@dataclass(frozen=True, slots=True)
class Said:
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
        tree[key] = tree_of(value, locate, place) if _is_table(value) else Said(value, place, locate)
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


def reach(tree: Tree, keys: Keys) -> tuple[Said | Tree, Keys]:
    """Follow keys as far as they lead; gives what is there, and the keys that are left."""
    node: Said | Tree = tree
    for index, key in enumerate(keys):
        inner = _inside(node, key)
        if inner is None:
            return node, keys[index:]
        node = inner
    return node, ()


def _inside(node: Said | Tree, key: Any) -> Said | Tree | None:
    if not isinstance(node, Said):
        return node.get(key)
    items = node.value if isinstance(node.value, list) and isinstance(key, int) else []
    table = items[key] if key in range(len(items)) else None
    return table if isinstance(table, dict) else None


def leaves(node: Said | Tree) -> Iterator[Said]:
    """Give all values in a tree."""
    if isinstance(node, Said):
        yield node
        return
    for below in node.values():
        yield from leaves(below)
