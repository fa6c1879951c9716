"""What is said about settings that are wrong: the place, the problem, the nearest right key, and who said it."""

from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from axolotl_core.names import nearest
from axolotl_server.configuration.settings_shape import below, fields_of, keys_of
from axolotl_server.configuration.sourced_values import Keys, Source, SourcedValue, Tree, leaves, reach
from axolotl_server.settings.server import ServerSettings

_MOST_ORIGINS: Final = 4
_UNKNOWN: Final = "extra_forbidden"
_NO_TABLE: Final = frozenset({"dict_type", "mapping_type", "model_attributes_type", "model_type"})


def describe(error: ValidationError, tree: Tree, known: Iterable[Keys] = ()) -> list[str]:
    """Write a finding for every mistake, save for those at places where something is known to be wrong."""
    mistakes = error.errors(include_url=False, include_input=False)
    located = [(_keys(mistake), mistake) for mistake in mistakes]
    skipped = set(known)
    return [_finding(keys, _problem(keys, mistake), tree) for keys, mistake in located if keys not in skipped]


def _finding(keys: Keys, problem: str, tree: Tree) -> str:
    """Write a finding about a setting, and where it was set."""
    place = f"Setting {'.'.join(map(str, keys))}" if keys else "The settings"
    origins = _origins(keys, tree)
    return f"{place}{problem}" + (f" ({origins})" if origins else "")


def _keys(mistake: ErrorDetails) -> Keys:
    """Find the setting that a mistake is in: what validators add to the place is no part of it."""
    keys: Keys = ()
    annotation: Any = ServerSettings
    *table, last = mistake["loc"] or ("",)
    for key in table:
        inner = below(annotation, key)
        if inner is not None:
            keys, annotation = (*keys, key), inner
    is_key = below(annotation, last) is not None or mistake["type"] == _UNKNOWN
    return (*keys, last) if is_key else keys


def _problem(keys: Keys, mistake: ErrorDetails) -> str:
    kind = mistake["type"]
    if kind == _UNKNOWN:
        return " is unknown" + _hint(keys)
    if kind in _NO_TABLE:
        return ": must be a table" + _hint(keys)
    name = "the name: " if "[key]" in mistake["loc"] else ""
    return f": {name}{mistake['msg'].removeprefix('Value error, ')}" + _hint(keys)


def _hint(keys: Keys) -> str:
    """Name the nearest key where there is none of that name."""
    annotation: Any = ServerSettings
    for key in keys[:-1]:
        annotation = below(annotation, key)
    last, fields = str(keys[-1]) if keys else "", fields_of(annotation)
    if not keys or not fields or last in fields:
        return ""
    if last.removesuffix("_file") in fields:
        return "; only secrets are read from files"
    near = nearest(last, keys_of(annotation))
    return f"; did you mean {near!r}?" if near else ""


def _origins(keys: Keys, tree: Tree) -> str:
    """Tell who said it; of a table whose values come from several places, each with its own."""
    node, rest = reach(tree, keys)
    if isinstance(node, SourcedValue):
        return str(node.origin(rest))
    said = list(leaves(node)) if node is not tree or not keys else []
    together = {_origin(leaf, len(keys) - len(rest)) for leaf in said}
    if len(together) == 1:
        return together.pop()
    shown = [f"{'.'.join(map(str, leaf.keys))}: {leaf.origin()}" for leaf in said[:_MOST_ORIGINS]]
    return "; ".join([*shown, "…"] if len(said) > _MOST_ORIGINS else shown)


def _origin(leaf: SourcedValue, depth: int) -> str:
    """Of what stands in a file, name the line of its table."""
    origin = leaf.origin()
    return str(leaf.locate(leaf.keys[:depth]) if origin.layer is Source.FILE else origin)
