"""Files that belong to clients: read, changed in one place, and written so that nothing is lost."""

import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from axolotl_cli.clients.entry import ClientEntry
from axolotl_core.errors import ConfigurationError

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


_OWN_KEYS: Final = ("type", "command", "args", "env", "url", "headers")
"""What an entry of ours consists of; other keys are the user's."""
_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file as it was found."""

    path: Path
    content: bytes | None
    """None where there is none yet."""

    @classmethod
    def read(cls, path: Path) -> "ClientFile":
        """Read a file, or find that there is none; a link leads to what is changed.

        Raises:
            ConfigurationError: if it cannot be read.
        """
        try:
            real = path.resolve()
            return cls(real, real.read_bytes() if real.exists() else None)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None

    def with_addition(self, addition: ClientEntry, *, force: bool = False) -> str | None:
        """Give the text with a server added; None where it has it already.

        Raises:
            ConfigurationError: if the file is not understood, or has another server of that name.
        """
        try:
            before = "" if self.content is None else self.content.decode("utf-8")
            after = merged(before, addition, force=force)
        except UnicodeDecodeError:
            raise ConfigurationError(f"{self.path} is left alone: it is no UTF-8") from None
        except NotUnderstood as error:
            raise ConfigurationError(f"{self.path} is left alone: {error}") from None
        return None if after == before and self.content is not None else after

    def write(self, text: str) -> Path | None:
        """Put a text in the place of what was read, at once; gives the copy of what was there.

        Raises:
            ConfigurationError: if it cannot be written, or somebody else wrote it in the meantime.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            backup = None if self.content is None else self._keep(self.content)
            self._replace(text.encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror}") from None
        return backup

    def _keep(self, content: bytes) -> Path:
        """Write a copy beside the file, over no other file."""
        number = 0
        while True:
            backup = self.path.with_name(f"{self.path.name}.bak{number or ''}")
            number += 1
            with suppress(FileExistsError):
                with open(backup, "xb", opener=lambda name, flags: os.open(name, flags, self._mode())) as stream:
                    stream.write(content)
                return backup

    def _replace(self, content: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, self._mode())
            if self.content != (self.path.read_bytes() if self.path.exists() else None):
                raise ConfigurationError(f"{self.path} was changed by somebody else just now: try again")
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _mode(self) -> int:
        """Keep who may read it; a new one is for its user alone, since it may come to hold more."""
        return 0o600 if self.content is None else stat.S_IMODE(self.path.stat().st_mode)


def merged(text: str, addition: ClientEntry, *, force: bool = False) -> str:
    """Add a server to the text of a file and leave the rest as it stands.

    Raises:
        NotUnderstood: if the text is no JSON object, or something in it is not what it has to be.
        ConfigurationError: if it has another server of that name, and force was not said.
    """
    mark, body = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    if not body.strip():
        return mark + write_json(addition.document)
    after = _with_server(body, addition, force)
    for wanted in addition.inputs:
        after = _with_input(after, wanted)
    _check(body, after, addition)
    return mark + after


def _with_server(text: str, addition: ClientEntry, force: bool) -> str:
    root = _root(text)
    editor = JsonEditor(text, root)
    section = root.find(addition.section)
    if section is None:
        return editor.apply(editor.add_member(root, addition.section, {addition.name: dict(addition.entry)}))
    if not isinstance(section, JsonObject):
        raise NotUnderstood(f"{addition.section} is no object")
    present = section.find(addition.name)
    if present is None:
        edits = editor.add_member(section, addition.name, dict(addition.entry))
    else:
        edits = _over(editor, present, addition, force)
    return editor.apply(edits)


def _over(editor: JsonEditor, present: Any, addition: ClientEntry, force: bool) -> list[Edit]:
    """Replace an entry of the same name, if it is another one."""
    old = present.plain if isinstance(present, JsonObject) else {}
    differing = [key for key in _OWN_KEYS if _differs(key, old.get(key), addition.entry.get(key))]
    if not differing and isinstance(present, JsonObject):
        return []
    if not force:
        raise ConfigurationError(
            f"There is another server {addition.name!r} in the file already (with other "
            f"{' and '.join(differing) or 'contents'}): choose a name with --name, or replace it with --force"
        )
    return editor.replace(present, _renewed(old, addition.entry))


def _differs(key: str, old: Any, new: Any) -> bool:
    """Compare; what says nothing may also be left out, and so may the transport, which the other keys tell."""
    return bool(old and new if key == "type" else old or new) and old != new


def _renewed(old: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Take an entry of ours, with what else its user said there."""
    return {**entry, **{key: value for key, value in old.items() if key not in _OWN_KEYS}}


def _with_input(text: str, wanted: Mapping[str, Any]) -> str:
    root = _root(text)
    editor = JsonEditor(text, root)
    inputs = root.find("inputs")
    if inputs is None:
        return editor.apply(editor.add_member(root, "inputs", [dict(wanted)]))
    if not isinstance(inputs, JsonArray):
        raise NotUnderstood("inputs is no array")
    present = (one for one in inputs.plain if isinstance(one, dict) and one.get("id") == wanted["id"])
    return text if any(present) else editor.apply(editor.add_item(inputs, dict(wanted)))


def _root(text: str) -> JsonObject:
    root = parse_json_text(text)
    if not isinstance(root, JsonObject):
        raise NotUnderstood("it is no JSON object")
    return root


def _check(before: str, after: str, addition: ClientEntry) -> None:
    """Compare everything but what was added; whatever the edits did, nothing is written that lost something."""
    old, new = _root(before).plain, _root(after).plain
    for document in (old, new):
        section = document.get(addition.section, {})
        section.pop(addition.name, None)
        if not section:
            document.pop(addition.section, None)
    added = new.pop("inputs", []) if addition.inputs else []
    kept = old.pop("inputs", []) if addition.inputs else []
    if _ordered(old) != _ordered(new) or added[: len(kept)] != kept:
        raise NotUnderstood("it is written in a way that cannot be changed safely")


def _ordered(value: Any) -> Any:
    """Make the order of keys count, and the difference between 1 and true."""
    if isinstance(value, dict):
        return [(key, _ordered(one)) for key, one in value.items()]
    return [_ordered(one) for one in value] if isinstance(value, list) else (type(value), value)
