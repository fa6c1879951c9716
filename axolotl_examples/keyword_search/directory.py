"""Open directories, protected from being replaced by links during a search."""

import errno
import os
from operator import attrgetter
from typing import Final

_BY_NAME: Final = attrgetter("name")
_SUPPORTS_DIR_FD: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

# Flags that the system does not have are left out. Without O_NONBLOCK, opening a pipe would wait for a writer.
_FILE: Final = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
_DIRECTORY: Final = _FILE | getattr(os, "O_DIRECTORY", 0)


class Directory:
    """An open directory. Its entries are opened relative to it and never through a link.

    A path can change between check and use; a descriptor cannot. On systems that cannot open files relative to a
    descriptor, a path is accepted only if resolving it does not change it.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str, *, use_descriptor: bool = _SUPPORTS_DIR_FD) -> "Directory":
        """Open a directory whose path is trusted."""
        return cls(path, os.open(path, _DIRECTORY) if use_descriptor else None)

    def enter(self, name: str) -> "Directory":
        """Open a subdirectory. Raises `NotADirectoryError` if the name is not a directory."""
        path = os.path.join(self._path, name)
        if self._descriptor is not None:
            return Directory(path, os.open(name, _DIRECTORY, dir_fd=self._descriptor))
        if os.path.realpath(path) != path:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return Directory(path, None)

    def open_file(self, name: str) -> int:
        """Open a file in this directory for reading, without blocking, and return its descriptor."""
        if self._descriptor is None:
            return os.open(os.path.join(self._path, name), _FILE)
        return os.open(name, _FILE, dir_fd=self._descriptor)

    def entries(self) -> "list[os.DirEntry[str]]":
        """List the entries, sorted by name."""
        with os.scandir(self._path if self._descriptor is None else self._descriptor) as entries:
            return sorted(entries, key=_BY_NAME)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
