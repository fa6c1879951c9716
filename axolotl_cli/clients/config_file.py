"""Configuration files of MCP clients: JSON with comments, edited in place and replaced atomically."""

import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axolotl_cli.clients.entry import ClientEntry
from axolotl_core.errors import ConfigurationError

_STRING: Final = r'"(?:[^"\\\r\n]|\\.)*"'
_COMMENT: Final = re.compile(rf"({_STRING})|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf"({_STRING})|(?<=[^\s,\[{{:])(\s*),(?=\s*[}}\]])")
_SPACE: Final = re.compile(r"\s*")
_FIRST_INDENT: Final = re.compile(r"[{\[]\s*\n([ \t]+)\S")


class InvalidConfigFile(ValueError):
    """The file is not JSON, or cannot hold the entry; the message explains why."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {json.dumps(key)} occurs twice in one object")
        members[key] = value
    return members


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)


class JsonDocument:
    """JSON with comments and trailing commas; an edit leaves the rest of the text as it is.

    Comments and trailing commas are replaced with spaces before `json` parses the text, so every value has the same
    position in both texts.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        without_comments = _COMMENT.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)
        self._json = _TRAILING_COMMA.sub(lambda match: match[1] or match[2] + " ", without_comments)
        try:
            value = _DECODER.decode(self._json)
        except ValueError as error:
            raise InvalidConfigFile(str(error)) from None
        if not isinstance(value, dict):
            raise InvalidConfigFile("it is not a JSON object")
        self.value: dict[str, Any] = value
        is_one_line = bool(value) and "\n" not in self._json.strip()
        indent = _FIRST_INDENT.search(self._json)
        self._unit = None if is_one_line else indent[1] if indent else "  "

    def insert_first(self, value: Any, *path: str, key: str | None = None) -> str:
        """Return the text with a value inserted before all others in an object (with a key) or array.

        There, neither a comma nor a comment after the last value matters.
        """
        start, end = self._span(path)
        is_empty = not self._json[start + 1 : end - 1].strip()
        rest = self._text[start + 1 :].lstrip(" \t")
        outer = self._line_break(start)
        inner = outer + (self._unit or "")
        before_rest = "" if rest.startswith(("\r", "\n")) else outer if is_empty else inner or " "
        head = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
        piece = inner + head + self._encode(value, inner) + ("" if is_empty else ",")
        return self._text[: start + 1] + piece + before_rest + rest

    def replace(self, value: Any, *path: str) -> str:
        """Return the text with another value at a path."""
        start, end = self._span(path)
        return self._text[:start] + self._encode(value, self._line_break(start)) + self._text[end:]

    def _span(self, path: tuple[str, ...]) -> tuple[int, int]:
        start = self._skip_space(0)
        for key in path:
            start = self._members(start)[key]
        return start, _DECODER.raw_decode(self._json, start)[1]

    def _members(self, start: int) -> dict[str, int]:
        """Find where the value of each key of an object starts."""
        found = {}
        position = self._skip_space(start + 1)
        while self._json[position] != "}":
            key, position = _DECODER.raw_decode(self._json, position)
            found[key] = position = self._skip_space(self._skip_space(position) + 1)
            position = self._skip_space(_DECODER.raw_decode(self._json, position)[1])
            if self._json[position] == ",":
                position = self._skip_space(position + 1)
        return found

    def _skip_space(self, position: int) -> int:
        match = _SPACE.match(self._json, position)
        return position if match is None else match.end()

    def _line_break(self, position: int) -> str:
        """Return a line break with the indentation of the line at a position; nothing if all is on one line."""
        if self._unit is None:
            return ""
        indent = re.match(r"[ \t]*", self._text[self._text.rfind("\n", 0, position) + 1 :])
        return ("\r\n" if "\r\n" in self._text else "\n") + (indent[0] if indent else "")

    def _encode(self, value: Any, line_break: str) -> str:
        return json.dumps(value, indent=self._unit, ensure_ascii=False).replace("\n", line_break)


_OWN_KEYS: Final = ("type", "command", "args", "env", "url", "headers")
"""The keys that we write; others belong to the user."""
_BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's configuration file with the content that it had when it was read."""

    path: Path
    content: bytes | None
    """None if the file does not exist yet."""

    @classmethod
    def read(cls, path: Path, inside: Path | None = None) -> "ClientFile":
        """Read a file, which may not exist yet; a symbolic link stays one, and the file behind it is changed.

        Raises `ConfigurationError` if the file is not `inside` a directory: somebody else may have made the link.
        """
        try:
            real = path.resolve()
            if inside is not None and not real.is_relative_to(inside.resolve()):
                raise ConfigurationError(
                    f"{path} was not changed: it leads to {real}, outside the project; remove the symbolic link, "
                    "or name the file with --config"
                )
            return cls(real, real.read_bytes() if real.exists() else None)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None

    def with_entry(self, entry: ClientEntry, *, force: bool = False) -> str | None:
        """Return the text with an entry added, or None if the file already has it."""
        try:
            before = "" if self.content is None else self.content.decode("utf-8")
            after = merge(before, entry, force=force)
        except UnicodeDecodeError:
            raise ConfigurationError(f"{self.path} was not changed: it is not UTF-8") from None
        except InvalidConfigFile as error:
            raise ConfigurationError(f"{self.path} was not changed: {error}") from None
        return None if after == before and self.content is not None else after

    def write(self, text: str) -> Path | None:
        """Replace the file atomically and return the path of its backup.

        Raises `ConfigurationError` if the file cannot be written, or has changed since it was read.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            backup = None if self.content is None else self._back_up(self.content)
            self._replace(text.encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror}") from None
        return backup

    def _back_up(self, content: bytes) -> Path:
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
                raise ConfigurationError(f"{self.path} was changed by another program just now: try again")
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _mode(self) -> int:
        """Keep the permissions; a new file is private, because secrets may be added to it later."""
        return 0o600 if self.content is None else stat.S_IMODE(self.path.stat().st_mode)


def merge(text: str, entry: ClientEntry, *, force: bool = False) -> str:
    """Return the text of a file with an entry added and everything else unchanged.

    Raises `InvalidConfigFile` if the file cannot hold the entry, and `ConfigurationError` if it has a different one of
    the same name, unless `force` is given.
    """
    mark, body = (_BYTE_ORDER_MARK, text[1:]) if text.startswith(_BYTE_ORDER_MARK) else ("", text)
    if not body.strip():
        return mark + json.dumps(entry.document, indent=2, ensure_ascii=False) + "\n"
    try:
        merged = _with_server(body, entry, force)
        for needed in reversed(entry.inputs):
            merged = _with_input(merged, needed)
        _check(body, merged, entry)
    except RecursionError:
        raise InvalidConfigFile("it is nested too deeply") from None
    return mark + merged


def _with_server(text: str, entry: ClientEntry, force: bool) -> str:
    document = JsonDocument(text)
    if entry.section not in document.value:
        return document.insert_first({entry.name: dict(entry.server)}, key=entry.section)
    servers = document.value[entry.section]
    if not isinstance(servers, dict):
        raise InvalidConfigFile(f"{entry.section} is not an object")
    if entry.name not in servers:
        return document.insert_first(dict(entry.server), entry.section, key=entry.name)
    present = servers[entry.name]
    old = present if isinstance(present, dict) else {}
    different = [key for key in _OWN_KEYS if _differs(key, old.get(key), entry.server.get(key))]
    if not different and present is old:
        return text
    if not force:
        raise ConfigurationError(
            f"The file already has a different server {entry.name!r} (different {' and '.join(different) or 'value'}): "
            "choose another name with --name, or replace it with --force"
        )
    users = {key: value for key, value in old.items() if key not in _OWN_KEYS}
    return document.replace({**entry.server, **users}, entry.section, entry.name)


def _differs(key: str, old: Any, new: Any) -> bool:
    """Compare two values; an empty one may also be missing, and so may the transport, which other keys imply."""
    return bool(old and new if key == "type" else old or new) and old != new


def _with_input(text: str, needed: Mapping[str, Any]) -> str:
    document = JsonDocument(text)
    if "inputs" not in document.value:
        return document.insert_first([dict(needed)], key="inputs")
    inputs = document.value["inputs"]
    if not isinstance(inputs, list):
        raise InvalidConfigFile("inputs is not an array")
    is_present = any(isinstance(one, dict) and one.get("id") == needed["id"] for one in inputs)
    return text if is_present else document.insert_first(dict(needed), "inputs")


def _check(before: str, after: str, entry: ClientEntry) -> None:
    """Compare everything except the entry, so that no edit can lose anything, whatever its mistake."""
    old, new = JsonDocument(before).value, JsonDocument(after).value
    for value in (old, new):
        servers = value.get(entry.section, {})
        servers.pop(entry.name, None)
        if not servers:
            value.pop(entry.section, None)
    old_inputs = old.pop("inputs", []) if entry.inputs else []
    new_inputs = new.pop("inputs", []) if entry.inputs else []
    kept_inputs = new_inputs[len(new_inputs) - len(old_inputs) :]
    # As text, because the order of keys matters, and so does the difference between 1 and true.
    if json.dumps([old, old_inputs]) != json.dumps([new, kept_inputs]):
        raise InvalidConfigFile("it cannot be changed without losing something")
