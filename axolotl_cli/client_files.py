"""Files that belong to clients: read, changed in one place, and written so that nothing is lost."""

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axolotl_cli.entries import Addition
from axolotl_cli.json_edits import Edit, JsonEditor, write_json
from axolotl_cli.json_text import JsonArray, JsonObject, NotUnderstood, parse_json_text
from axolotl_core.errors import ConfigurationError

__all__ = ["ClientFile", "merged"]

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

    def with_addition(self, addition: Addition, *, force: bool = False) -> str | None:
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


def merged(text: str, addition: Addition, *, force: bool = False) -> str:
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


def _with_server(text: str, addition: Addition, force: bool) -> str:
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


def _over(editor: JsonEditor, present: Any, addition: Addition, force: bool) -> list[Edit]:
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


def _check(before: str, after: str, addition: Addition) -> None:
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
