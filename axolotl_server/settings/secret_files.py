"""Secrets in files: each secret setting has a variant `<name>_file` with a path."""

import os
import stat
from os import PathLike, fspath
from pathlib import Path
from typing import Final

import msgspec

from axolotl_server.settings.origins import FlatValues, dotted
from axolotl_server.settings.settings_shape import Shape


class UnreadableFile(Exception):
    """A file cannot be read. The text says why and shows nothing of the content."""


def is_trusted(found: os.stat_result) -> bool:
    """Tell whether a file or directory belongs to this user or to root: nobody else has chosen its content."""
    return found.st_uid in (os.geteuid(), 0)


def read_small(path: Path, max_bytes: int, *, is_private: bool = False) -> str:
    """Read a regular UTF-8 file of limited size; raises UnreadableFile if that is not possible.

    A private file must belong to this user or to root, and nobody else may read it.
    """
    try:
        # Opening a pipe would block until somebody writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableFile("it is not a regular file")
            if is_private and not is_trusted(found):
                raise UnreadableFile(
                    f"it belongs to another user (ID {found.st_uid}): run this as that user, or use a directory that "
                    "only you can write to"
                )
            if is_private and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
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


def find_secret_files(source: FlatValues, shape: Shape, findings: list[str]) -> FlatValues:
    """Replace each `<name>_file` of a source with a SecretFile as `<name>`. Setting both is a finding."""
    found: FlatValues = {}
    for keys, sourced in source.items():
        file = shape.at(*keys)
        if file.secret is None:
            found[keys] = sourced
            continue
        is_list = file.items is not None
        paths = sourced.value if is_list and isinstance(sourced.value, list | tuple) else [sourced.value]
        key = (*keys[:-1], file.secret)
        if key in source:
            problem = f"{file.secret} is set too; set only one of them"
            findings.append(f"Setting {dotted(sourced.written)}: {problem} ({sourced.origin})")
        elif paths and all(isinstance(path, str | PathLike) and fspath(path) for path in paths):
            files = [SecretFile(fspath(path)) for path in paths]
            found[key] = msgspec.structs.replace(sourced, value=files if is_list else files[0])
        else:
            found[keys] = sourced  # not a path: an error like an unknown setting
    return found
