"""Secrets in files: each secret setting has a variant `<name>_file` with a path."""

import json
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import msgspec

from axolotl_server.settings.origins import Keys, SourceValues, dotted
from axolotl_server.settings.settings_shape import SecretForm, below, fields_of, secret_form


class UnreadableFile(Exception):
    """A file cannot be read. The text says why and shows nothing of the content."""


def is_trusted(found: os.stat_result) -> bool:
    """Tell whether a file or directory belongs to this user or to root: nobody else has chosen its content."""
    return sys.platform == "win32" or found.st_uid in (os.geteuid(), 0)


def read_small(path: Path, max_bytes: int, *, is_private: bool = False) -> str:
    """Read a regular UTF-8 file of limited size; raises UnreadableFile if that is not possible.

    A private file must belong to this user or to root, and nobody else may read it.
    """
    try:
        # Opening a pipe would block until somebody writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableFile("it is not a regular file")
            if is_private and not is_trusted(found):
                raise UnreadableFile(
                    f"it belongs to another user (ID {found.st_uid}): run this as that user, or use a directory that "
                    "only you can write to"
                )
            if is_private and sys.platform != "win32" and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UnreadableFile(f"others can use it: run chmod 600 {path}")
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise UnreadableFile("there is no such file") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > max_bytes:
        raise UnreadableFile(f"it has more than {max_bytes} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UnreadableFile("it is not UTF-8 text") from None


_MAX_BYTES: Final = 64 * 1024


class SecretFile(msgspec.Struct, frozen=True):
    """A placeholder for a secret until all sources are combined: files that a stronger source overrides stay closed."""

    path: str
    keys: Keys
    """The setting that names the file."""

    def read(self) -> str:
        """Read the secret; raises UnreadableFile with the path in its text."""
        try:
            return read_secret(self.path)
        except UnreadableFile as error:
            # Somebody may have put the secret itself here: show nothing but what is clearly a path.
            shown = f"{self.path}: " if self.path.startswith("/") else ""
            raise UnreadableFile(f"{shown}{error}") from None


def read_secret(path: str | Path) -> str:
    """Read a secret: the content of a file without the line break at its end.

    Raises UnreadableFile if the file cannot be read, is empty, or is too large for a secret.
    """
    content = read_small(Path(path), _MAX_BYTES)
    secret = content.removesuffix("\n").removesuffix("\r") if content.endswith("\n") else content
    if not secret:
        raise UnreadableFile("it is empty")
    return secret


def find_secret_files(source: SourceValues, annotation: Any, findings: list[str]) -> SourceValues:
    """Replace each `<name>_file` of a source with a SecretFile as `<name>`. Setting both is a finding."""
    finder = _Finder(source, findings)
    values = finder.find_in_table(source.values, annotation, ())
    return msgspec.structs.replace(source, values=values, renamed=finder.renamed)


class _Finder:
    def __init__(self, source: SourceValues, findings: list[str]) -> None:
        self._source = source
        self._findings = findings
        self.renamed = dict(source.renamed)

    def find_in_table(self, table: Mapping[str, Any], annotation: Any, keys: Keys) -> dict[str, Any]:
        fields = fields_of(annotation)
        forms = {name: secret_form(field.annotation) for name, field in fields.items()}
        file_keys = {f"{name}_file": (name, form) for name, form in forms.items() if form}
        found: dict[str, Any] = {}
        for key, value in table.items():
            if key not in file_keys or key in fields:
                found[key] = self._find_in_value(value, below(annotation, key), (*keys, key))
                continue
            name, form = file_keys[key]
            written = self._source.written((*keys, key))
            files = _files(value, form, written)
            if name in table:
                self._report(written, f"{name} is set too; set only one of them")
            elif files is None:
                self._report(written, "must be the path of a file")
            else:
                found[name] = files
                self.renamed[*keys, name] = written
        return found

    def _find_in_value(self, value: Any, annotation: Any, keys: Keys) -> Any:
        match value:
            case Mapping():
                return self.find_in_table(value, annotation, keys)
            case list() | tuple():
                items = enumerate(value)
                return [self._find_in_value(item, below(annotation, index), (*keys, index)) for index, item in items]
        return value

    def _report(self, keys: Keys, problem: str) -> None:
        self._findings.append(f"Setting {dotted(keys)}: {problem} ({self._source.locate(keys)})")


def _files(value: Any, form: SecretForm, keys: Keys) -> SecretFile | list[SecretFile] | None:
    paths = [value] if form == "one" else _listed(value)
    if not paths or not all(isinstance(path, str | PathLike) and fspath(path) for path in paths):
        return None
    files = [SecretFile(fspath(path), keys) for path in paths]
    return files[0] if form == "one" else files


def _listed(value: Any) -> list[Any]:
    """Read one path or several; a variable has several as JSON."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError):
            value = json.loads(value)
    return list(value) if isinstance(value, list | tuple) else [value]
