"""Directories that nobody can swap for a link while they are searched."""

import errno
import os
from operator import attrgetter
from typing import Final

_BY_NAME: Final = attrgetter("name")
_ANCHORED: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

# A flag that a system does not know is left out. O_NONBLOCK, because opening a pipe would wait for its other end.
_FILE: Final = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
_DIRECTORY: Final = _FILE | getattr(os, "O_DIRECTORY", 0)


class Directory:
    """An open directory; whatever is in it is opened relative to it, and never through a link.

    A path can change between the check and the opening, a descriptor cannot. A system that cannot open relative to a
    descriptor gets the next best: a path must be the same before and after it is resolved.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str, *, anchored: bool = _ANCHORED) -> "Directory":
        """Open a directory whose path is trusted.

        Raises:
            OSError: if it cannot be opened.
        """
        return cls(path, os.open(path, _DIRECTORY) if anchored else None)

    def enter(self, name: str) -> "Directory":
        """Open a directory in this one.

        Raises:
            NotADirectoryError: if it is something else.
            OSError: if it cannot be opened.
        """
        path = os.path.join(self._path, name)
        if self._descriptor is not None:
            return Directory(path, os.open(name, _DIRECTORY, dir_fd=self._descriptor))
        if os.path.realpath(path) != path:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return Directory(path, None)

    def open_file(self, name: str) -> int:
        """Open a file in this directory for reading and give its descriptor; it never waits.

        Raises:
            OSError: if it cannot be opened.
        """
        if self._descriptor is None:
            return os.open(os.path.join(self._path, name), _FILE)
        return os.open(name, _FILE, dir_fd=self._descriptor)

    def entries(self) -> "list[os.DirEntry[str]]":
        """List what is in it, in the order of the names.

        Raises:
            OSError: if it cannot be read.
        """
        with os.scandir(self._path if self._descriptor is None else self._descriptor) as entries:
            return sorted(entries, key=_BY_NAME)

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
