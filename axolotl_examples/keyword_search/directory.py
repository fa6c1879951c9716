"""Directories that are protected from being replaced by links during a search, and a reader of their text files."""

import errno
import os
import stat
from operator import attrgetter
from typing import Final

from axolotl_examples.keyword_search.models import SkipReason

_BY_NAME: Final = attrgetter("name")
_SUPPORTS_DIR_FD: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

# Flags that the system does not have are left out. Without O_NONBLOCK, opening a pipe would wait for a writer.
_FILE: Final = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
_DIRECTORY: Final = _FILE | getattr(os, "O_DIRECTORY", 0)

_EXAMINED_BYTES: Final = 8192
_CHUNK_BYTES: Final = 64 * 1024


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


class FileReader:
    """Reads text files up to a maximum size."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    def read(self, directory: Directory, name: str) -> bytes | SkipReason:
        """Return the content of a file in the directory, or the reason why it is skipped."""
        descriptor = directory.open_file(name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return "special"
            if status.st_size > self._max_bytes:
                return "too_large"
            # In procfs and some other file systems, files have the size 0 and a content anyway.
            begin = os.read(descriptor, status.st_size or _CHUNK_BYTES)
            data = _rest(descriptor, begin, status.st_size or self._max_bytes + 1)
        finally:
            os.close(descriptor)
        if len(data) > self._max_bytes:
            return "too_large"
        # Like git and grep, treat a file with zero bytes as binary.
        return "binary" if data.find(b"\0", 0, _EXAMINED_BYTES) >= 0 else data


def _rest(descriptor: int, data: bytes, size: int) -> bytes:
    """Read on up to `size` bytes. Some file systems return fewer bytes than requested, so one read is not enough."""
    while 0 < len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data
