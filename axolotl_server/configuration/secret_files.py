"""Secrets that stand in files: `<name>_file` gives the path, in every source and for every secret."""

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from axolotl_server.configuration.settings_shape import SecretForm, below, fields_of, secret_form
from axolotl_server.configuration.sourced_values import Keys, SourcedValue, Tree, leaves, tree_of


class UnreadableFile(Exception):
    """A file cannot be read; the text says why, and nothing of what is in it."""


def read_small(path: Path, max_bytes: int) -> str:
    """Read a text file.

    Raises:
        UnreadableFile: if it is not there, may not be read, is no regular file, is too large or is no UTF-8.
    """
    try:
        # A pipe would be waited for until somebody writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableFile("it is no regular file")
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
        raise UnreadableFile("it is no UTF-8 text") from None


_MAX_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class SecretFile:
    """Stands for a secret until all sources are weighed: the files of those that are not heard stay closed."""

    path: str

    def read(self) -> str:
        """Read the secret.

        Raises:
            UnreadableFile: if that cannot be done; the text names the path.
        """
        try:
            return read_secret(self.path)
        except UnreadableFile as error:
            # Whoever writes the secret itself into the wrong setting shall not find it in the log.
            shown = f"{self.path}: " if self.path.startswith("/") else ""
            raise UnreadableFile(f"{shown}{error}") from None


def read_secret(path: str | Path) -> str:
    """Read a secret: all that is in a file, save for one line break at its end.

    Raises:
        UnreadableFile: if it cannot be read, is empty or is too large for a secret.
    """
    content = read_small(Path(path), _MAX_BYTES)
    secret = content.removesuffix("\n").removesuffix("\r") if content.endswith("\n") else content
    if not secret:
        raise UnreadableFile("it is empty")
    return secret


def find_secret_files(tree: Tree, annotation: Any, findings: list[str], keys: Keys = ()) -> Tree:
    """Put a SecretFile in the place of each secret whose `<name>_file` a source gives; both at once is a finding."""
    fields = fields_of(annotation)
    forms = {name: secret_form(field.annotation) for name, field in fields.items()}
    named = {f"{name}_file": (name, form) for name, form in forms.items() if form and f"{name}_file" not in fields}
    found: Tree = {}
    for key, node in tree.items():
        place = (*keys, key)
        if key not in named:
            found[key] = _find_below(node, below(annotation, key), findings, place)
            continue
        name, form = named[key]
        files = _files(node, form)
        if name in tree:
            findings.append(_finding(place, f"{name} is given too; give one of them", node))
        elif files is None:
            findings.append(_finding(place, "must be the path of a file", node))
        else:
            found[name] = files
    return found


def _find_below(node: SourcedValue | Tree, annotation: Any, findings: list[str], keys: Keys) -> SourcedValue | Tree:
    if not isinstance(node, SourcedValue):
        return find_secret_files(node, annotation, findings, keys)
    if not isinstance(node.value, list | tuple):
        return node
    items = []
    for index, item in enumerate(node.value):
        place = (*node.keys, index)
        table = tree_of(item, node.locate, place) if isinstance(item, dict) else None
        items.append(item if table is None else find_secret_files(table, below(annotation, index), findings, place))
    return replace(node, value=items)


def _files(node: SourcedValue | Tree, form: SecretForm) -> SourcedValue | None:
    if not isinstance(node, SourcedValue):
        return None
    paths = [node.value] if form == "one" else _listed(node.value)
    if not paths or not all(isinstance(path, str | PathLike) and fspath(path) for path in paths):
        return None
    files = [SecretFile(fspath(path)) for path in paths]
    return replace(node, value=files[0] if form == "one" else files)


def _listed(value: Any) -> list[Any]:
    """Read a path or several; a variable has several as JSON."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError):
            value = json.loads(value)
    return list(value) if isinstance(value, list | tuple) else [value]


def _finding(keys: Keys, problem: str, node: SourcedValue | Tree) -> str:
    return f"Setting {'.'.join(map(str, keys))}: {problem} ({next(leaves(node)).origin()})"
