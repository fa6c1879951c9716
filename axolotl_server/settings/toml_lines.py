"""Line numbers of the keys in a TOML file, which the parser of the standard library does not report."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from axolotl_server.settings.origins import Keys


def line_of(path: Path, keys: Keys) -> int | None:
    """Find the line of a key, or of its table; None if the file contains neither."""
    try:
        lines = lines_of(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return next((lines[keys[:length]] for length in range(len(keys), 0, -1) if keys[:length] in lines), None)


@lru_cache(maxsize=4)
def lines_of(text: str) -> Mapping[Keys, int]:
    """Find the line of every key and table in a valid file."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    """How many tables each list of tables has so far."""
    table: Keys = ()
    for line, statement, parsed in _statements(text):
        if statement.startswith("["):
            table = _open_table(parsed, counts, is_item=statement.startswith("[["))
            lines.setdefault(table, line)
        else:
            for keys in _keys_in(parsed):
                lines.setdefault((*table, *keys), line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Split a file into statements: a line, or as many lines as are needed until they can be parsed."""
    start, statement = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        statement += line
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if parsed:
            yield start, statement.lstrip(), parsed
        start, statement = number + 1, ""


def _open_table(parsed: Mapping[str, Any], counts: dict[Keys, int], *, is_item: bool) -> Keys:
    """Return the path of a table from its header; in a list of tables, that of the last one."""
    names = _names(parsed)
    table: Keys = ()
    for index, name in enumerate(names):
        table = (*table, name)
        if is_item and index == len(names) - 1:
            counts[table] = counts.get(table, 0) + 1
        if table in counts:
            table = (*table, counts[table] - 1)
    return table


def _names(parsed: Any) -> list[str]:
    names = []
    while parsed:
        if isinstance(parsed, list):
            parsed = parsed[0]
            continue
        [(name, parsed)] = parsed.items()
        names.append(name)
    return names


def _keys_in(parsed: Any, keys: Keys = ()) -> Iterator[Keys]:
    if keys:
        yield keys
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            yield from _keys_in(value, (*keys, key))
    elif isinstance(parsed, list):
        for index, value in enumerate(parsed):
            yield from _keys_in(value, (*keys, index))
