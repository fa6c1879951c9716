"""Small text files, read with care: what is no file, or too large for one of its kind, is not read."""

import os
import stat
from pathlib import Path

__all__ = ["UnreadableFile", "read_small"]


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
