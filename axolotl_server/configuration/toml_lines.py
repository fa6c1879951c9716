"""The lines of a TOML file that say something; the parser of the standard library does not tell them."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from axolotl_server.configuration.origins import Keys


def line_of(path: Path, keys: Keys) -> int | None:
    """Find the line where a key stands, or the table that it would stand in; None if the file does not tell."""
    try:
        lines = lines_of(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return next((lines[keys[:length]] for length in range(len(keys), 0, -1) if keys[:length] in lines), None)


@lru_cache(maxsize=4)
def lines_of(text: str) -> Mapping[Keys, int]:
    """Find the line of every key and table in a file that is valid."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    """How many tables each list of tables has so far."""
    table: Keys = ()
    for line, statement, said in _statements(text):
        if statement.startswith("["):
            table = _open_table(said, counts, is_item=statement.startswith("[["))
            lines.setdefault(table, line)
        else:
            for keys in _keys_in(said):
                lines.setdefault((*table, *keys), line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Cut a file into its statements: a line, or as many as it takes until they can be read."""
    start, statement = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        statement += line
        try:
            said = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if said:
            yield start, statement.lstrip(), said
        start, statement = number + 1, ""


def _open_table(said: Mapping[str, Any], counts: dict[Keys, int], *, is_item: bool) -> Keys:
    """Give the way to a table from its header; in a list of tables, to the last one."""
    names = _names(said)
    table: Keys = ()
    for index, name in enumerate(names):
        table = (*table, name)
        if is_item and index == len(names) - 1:
            counts[table] = counts.get(table, 0) + 1
        if table in counts:
            table = (*table, counts[table] - 1)
    return table


def _names(said: Any) -> list[str]:
    names = []
    while said:
        if isinstance(said, list):
            said = said[0]
            continue
        [(name, said)] = said.items()
        names.append(name)
    return names


def _keys_in(said: Any, keys: Keys = ()) -> Iterator[Keys]:
    if keys:
        yield keys
    if isinstance(said, dict):
        for key, value in said.items():
            yield from _keys_in(value, (*keys, key))
    elif isinstance(said, list):
        for index, value in enumerate(said):
            yield from _keys_in(value, (*keys, index))
