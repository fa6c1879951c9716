"""JSON as it stands in files that people edit: with comments, a comma too many, and the place of everything."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

__all__ = ["JsonArray", "JsonMember", "JsonNode", "JsonObject", "JsonScalar", "NotUnderstood", "parse_json_text"]

T = TypeVar("T")

_BLANK: Final = re.compile(r"[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_SCALAR: Final = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.+-])")
_MOST_LEVELS: Final = 200


class NotUnderstood(ValueError):
    """The text is no JSON, or has the same key twice; the message says where."""


@dataclass(frozen=True, slots=True)
class JsonScalar:
    """A text, a number, a truth value or null."""

    start: int
    end: int
    value: Any

    @property
    def plain(self) -> Any:
        """The value itself."""
        return self.value


@dataclass(frozen=True, slots=True)
class JsonArray:
    """Items between square brackets."""

    start: int
    end: int
    children: "tuple[JsonNode, ...]"
    comma: bool
    """Whether a comma follows the last item."""
    last: int
    """Where the last thing in it ends that is no whitespace; comments are things."""
    in_comment: bool
    """Whether that is a comment which only the end of its line ends."""

    @property
    def plain(self) -> list[Any]:
        """The values themselves."""
        return [child.plain for child in self.children]


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A key with its value."""

    start: int
    key: str
    value: "JsonNode"

    @property
    def end(self) -> int:
        """Where the value ends."""
        return self.value.end


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Members between braces."""

    start: int
    end: int
    children: tuple[JsonMember, ...]
    comma: bool
    """Whether a comma follows the last member."""
    last: int
    """Where the last thing in it ends that is no whitespace; comments are things."""
    in_comment: bool
    """Whether that is a comment which only the end of its line ends."""

    @property
    def plain(self) -> dict[str, Any]:
        """The members themselves, in their order."""
        return {member.key: member.value.plain for member in self.children}

    def find(self, key: str) -> "JsonNode | None":
        """Give the value of a key, if it is there."""
        return next((member.value for member in self.children if member.key == key), None)


JsonNode: TypeAlias = JsonScalar | JsonArray | JsonObject


def parse_json_text(text: str) -> JsonNode:
    """Take a text apart.

    Raises:
        NotUnderstood: if it is no JSON, even with comments.
    """
    return _Reader(text).read_all()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._solid = 0
        """Where the last thing ended that is no whitespace."""
        self._in_comment = False
        """Whether that is a comment which only the end of its line ends."""

    def read_all(self) -> JsonNode:
        self._skip()
        node = self._read(0)
        self._skip()
        if self._at < len(self._text):
            self._refuse("nothing more was expected")
        return node

    def _read(self, level: int) -> JsonNode:
        if level > _MOST_LEVELS:
            self._refuse("this is nested too deeply")
        match self._text[self._at : self._at + 1]:
            case "{":
                return self._read_object(level)
            case "[":
                return self._read_array(level)
            case '"':
                return self._read_matching(_STRING, "a text that ends, without line breaks, was expected")
            case _:
                return self._read_matching(_SCALAR, "a value was expected")

    def _read_matching(self, pattern: re.Pattern[str], expected: str) -> JsonScalar:
        match = pattern.match(self._text, self._at)
        if match is None:
            self._refuse(expected)
        start, end = match.span()
        is_plain = pattern is _STRING and self._text.find("\\", start, end) < 0
        try:
            value = self._text[start + 1 : end - 1] if is_plain else json.loads(match[0])
        except ValueError:  # of an integer with thousands of digits
            self._refuse("this number is too long")
        self._pass(end)
        return JsonScalar(start, end, value)

    def _read_array(self, level: int) -> JsonArray:
        start = self._at
        items, comma, last, in_comment = self._enclosed("]", lambda: self._read(level + 1))
        return JsonArray(start, self._at, items, comma, last, in_comment)

    def _read_object(self, level: int) -> JsonObject:
        start, keys = self._at, set[str]()
        members, comma, last, in_comment = self._enclosed("}", lambda: self._read_member(level, keys))
        return JsonObject(start, self._at, members, comma, last, in_comment)

    def _enclosed(self, closing: str, read: Callable[[], T]) -> tuple[tuple[T, ...], bool, int, bool]:
        """Read what stands between brackets, and how it ends: with a comma, where, and in which kind of comment."""
        children: list[T] = []
        comma = False
        self._pass(self._at + 1)
        self._skip()
        while not self._text.startswith(closing, self._at):
            if children and not comma:
                self._refuse(f"a comma or {closing} was expected")
            children.append(read())
            self._skip()
            comma = self._text.startswith(",", self._at)
            if comma:
                self._pass(self._at + 1)
                self._skip()
        last, in_comment = self._solid, self._in_comment
        self._pass(self._at + 1)
        return tuple(children), comma, last, in_comment

    def _read_member(self, level: int, keys: set[str]) -> JsonMember:
        start = self._at
        key = self._read_matching(_STRING, "a key in double quotes was expected").value
        if key in keys:
            self._at = start
            self._refuse(f"the key {json.dumps(key)} stands here twice")
        keys.add(key)
        self._skip()
        if not self._text.startswith(":", self._at):
            self._refuse("a colon was expected")
        self._pass(self._at + 1)
        self._skip()
        return JsonMember(start, key, self._read(level + 1))

    def _skip(self) -> None:
        """Pass whitespace and comments."""
        while (match := _BLANK.match(self._text, self._at)) is not None:
            self._at = match.end()
            if match[0].startswith("/"):
                self._solid, self._in_comment = self._at, match[0].startswith("//")

    def _pass(self, position: int) -> None:
        self._at = self._solid = position
        self._in_comment = False

    def _refuse(self, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - (self._text.rfind("\n", 0, self._at) + 1) + 1
        raise NotUnderstood(f"line {line}, column {column}: {problem}")
