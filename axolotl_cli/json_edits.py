"""Changes to a JSON text that leave everything else as it stands: comments, order, indentation, line ends."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from axolotl_cli.json_text import JsonArray, JsonNode, JsonObject

__all__ = ["Edit", "JsonEditor", "write_json"]

_UNIT: Final = "  "
_INDENT: Final = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Edit:
    """Some text in the place of another."""

    start: int
    end: int
    text: str


_Write: TypeAlias = Callable[[str | None], str]
"""Writes something at an indentation, or in one line where there is none."""


def write_json(value: Any, unit: str = _UNIT) -> str:
    """Write a document of its own."""
    return json.dumps(value, indent=unit, ensure_ascii=False) + "\n"


class JsonEditor:
    """Makes edits to one text, in the style of that text."""

    def __init__(self, text: str, root: JsonObject) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._unit = self._unit_of(root)
        self._in_one_line = bool(root.children) and "\n" not in text[root.start : root.end]

    def add_member(self, parent: JsonObject, key: str, value: Any) -> list[Edit]:
        """Put a member behind all others."""
        return self._add(
            parent, lambda indent: f"{json.dumps(key, ensure_ascii=False)}: {self._written(value, indent)}"
        )

    def add_item(self, parent: JsonArray, value: Any) -> list[Edit]:
        """Put an item behind all others."""
        return self._add(parent, lambda indent: self._written(value, indent))

    def replace(self, node: JsonNode, value: Any) -> list[Edit]:
        """Put another value in the place of one."""
        indent = None if self._in_one_line else self._indent_at(node.start)
        return [Edit(node.start, node.end, self._written(value, indent))]

    def apply(self, edits: Iterable[Edit]) -> str:
        """Give the text with all edits, which must not overlap; of two at one place the first comes first."""
        pieces, at = [], 0
        for edit in sorted(edits, key=lambda edit: edit.start):
            pieces += [self._text[at : edit.start], edit.text]
            at = edit.end
        return "".join((*pieces, self._text[at:]))

    def _add(self, parent: JsonObject | JsonArray, write: _Write) -> list[Edit]:
        if not parent.children:
            return [self._fill(parent, write)]
        comma = [] if parent.comma else [Edit(parent.children[-1].end, parent.children[-1].end, ",")]
        behind = "," if parent.comma else ""
        if self._starts_line(parent.children[0].start):
            indent = self._indent_at(parent.children[0].start)
            text = f"{self._newline}{indent}{write(indent)}{behind}"
        elif parent.in_comment:
            indent = self._indent_at(parent.start) + self._unit
            text = f"{self._newline}{indent}{write(indent)}{behind}"
        else:
            text = f" {write(None)}{behind}"
        return [*comma, Edit(parent.last, parent.last, text)]

    def _fill(self, parent: JsonObject | JsonArray, write: _Write) -> Edit:
        """Put the first thing into what is empty, save for comments."""
        if self._in_one_line:
            return Edit(parent.last, parent.last, write(None))
        outer = self._indent_at(parent.start)
        text = f"{self._newline}{outer}{self._unit}{write(outer + self._unit)}"
        closing = parent.end - 1
        if "\n" in self._text[parent.last : closing]:
            return Edit(parent.last, parent.last, text)
        return Edit(parent.last, closing, f"{text}{self._newline}{outer}")

    def _written(self, value: Any, indent: str | None) -> str:
        if indent is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return f"{self._newline}{indent}".join(lines)

    def _unit_of(self, root: JsonObject) -> str:
        first = next((member.start for member in root.children if self._starts_line(member.start)), None)
        indent = "" if first is None else self._indent_at(first)
        return indent.removeprefix(self._indent_at(root.start)) or _UNIT

    def _starts_line(self, position: int) -> bool:
        line = self._text.rfind("\n", 0, position) + 1
        return line > 0 and not self._text[line:position].strip(" \t")

    def _indent_at(self, position: int) -> str:
        match = _INDENT.match(self._text, self._text.rfind("\n", 0, position) + 1)
        return "" if match is None else match[0]
