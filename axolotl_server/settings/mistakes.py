"""Descriptions of wrong settings: the place, the problem and the nearest valid key."""

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from axolotl_core.features.attributes import similar
from axolotl_server.settings.origins import CombinedValues, Keys, Source, dotted, prefixes
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_shape import below, fields_of, keys_of

_MOST_ORIGINS: Final = 4
_UNKNOWN: Final = "extra_forbidden"
_NO_NUMBER: Final = frozenset({"float_parsing", "float_type", "int_parsing", "int_type"})
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) *(ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?|d|days?)")
_SECONDS_OF: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NO_TABLE: Final = frozenset({"dict_type", "mapping_type", "model_attributes_type", "model_type"})


def describe(error: ValidationError, combined: CombinedValues, reported: Iterable[Keys] = ()) -> list[str]:
    """Write a finding for every mistake, except in settings that are already reported."""
    mistakes = error.errors(include_url=False)
    located = [(_keys(mistake), mistake) for mistake in mistakes]
    skipped = set(reported)
    return [_finding(keys, _problem(keys, mistake), combined) for keys, mistake in located if keys not in skipped]


def _finding(keys: Keys, problem: str, combined: CombinedValues) -> str:
    place = f"Setting {dotted(keys)}" if keys else "The settings"
    origins = _origins(keys, combined)
    return f"{place}{problem}" + (f" ({origins})" if origins else "")


def _keys(mistake: ErrorDetails) -> Keys:
    """Find the setting with the mistake, without the parts that validators add to its path."""
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
    if kind in _NO_NUMBER and keys and str(keys[-1]).endswith("_seconds"):
        return f": {_how_to_write_seconds(mistake['input'])}"
    if kind == "path_type":  # its message has the name of a class, which differs between versions of Python
        return ": must be a path"
    name = "the name: " if "[key]" in mistake["loc"] else ""
    return f": {name}{mistake['msg'].removeprefix('Value error, ')}" + _hint(keys)


def _how_to_write_seconds(value: object) -> str:
    """Explain a wrong number of seconds. Other values than durations are not shown, because they may be secrets."""
    written = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        return "must be a number of seconds, such as 30"
    number, unit = written.groups()
    factor = _SECONDS_OF[unit if unit == "ms" else unit[0]]
    return f"must be a number of seconds: write {float(number) * factor:.12g} instead of {value!r}"


def _hint(keys: Keys) -> str:
    """Say what replaces an old key, or suggest the nearest one, if there is none of that name."""
    annotation: Any = ServerSettings
    for key in keys[:-1]:
        annotation = below(annotation, key)
    last, fields = str(keys[-1]) if keys else "", fields_of(annotation)
    if not keys or not fields or last in fields:
        return ""
    from axolotl_server.settings.old_names import advice_about

    advice = advice_about(keys)
    if advice is not None:
        return f"; {advice}"
    if last.removesuffix("_file") in fields:
        return "; only secrets are read from files"
    near = similar(last, keys_of(annotation))
    return f"; did you mean {near!r}?" if near else ""


def _origins(keys: Keys, combined: CombinedValues) -> str:
    """Name the origin of a value, or of every value in the table that has the mistake."""
    owner = combined.owner_of(keys)
    if owner is not None:
        return str(owner.origin_of(keys))
    table = next((table for table in prefixes(keys) if combined.below(table)), ())
    owned = combined.below(table) if table or not keys else []
    distinct = {_origin(leaf, len(table), combined) for leaf in owned}
    if len(distinct) == 1:
        return distinct.pop()
    written = [(combined.owners[leaf].written(leaf), combined.origin_of(leaf)) for leaf in owned[:_MOST_ORIGINS]]
    shown = [f"{dotted(name)}: {origin}" for name, origin in written]
    return "; ".join([*shown, "…"] if len(owned) > _MOST_ORIGINS else shown)


def _origin(leaf: Keys, depth: int, combined: CombinedValues) -> str:
    """Name the origin of a value; in a file, the line of its table."""
    owner = combined.owners[leaf]
    origin = owner.origin_of(leaf)
    return str(owner.locate(owner.written(leaf)[:depth]) if origin.source is Source.FILE else origin)
