"""The folder in which the workers of a server share sessions, and those that killed servers have left."""

import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.server import ServerSettings

_PREFIX: Final = "axolotl-s-"
"""Short, because sockets in the folder have short paths."""
_NAME: Final = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")

_log: Final = logging.getLogger("axolotl")


@contextmanager
def sessions_directory(settings: ServerSettings) -> Iterator[str | None]:
    """Create a directory in which workers share sessions; None if the settings name a Redis or a directory."""
    if settings.redis.url is not None or settings.sessions.directory is not None:
        yield None
        return
    try:
        _remove_abandoned()
        directory, lock = _make()
    except OSError as error:
        raise ConfigurationError(
            f"Workers cannot share sessions ({error.strerror}): set sessions.directory, redis.url or TMPDIR"
        ) from error
    try:
        with directory as path:
            yield path
    finally:
        os.close(lock)


def keep_folder(path: str) -> int | None:
    """Keep other servers from removing a folder while this process lives, or until the descriptor is closed.

    The result is None if the folder does not exist.
    """
    import fcntl  # the system may have no locks

    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # the file system may have none either: then no server removes a folder
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):
            return descriptor
    os.close(descriptor)
    return None


def _make() -> tuple[TemporaryDirectory[str], int]:
    """Make a folder and lock it, again if another server has removed it in between."""
    while True:
        directory = TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        lock = keep_folder(directory.name)
        if lock is not None:
            return directory, lock
        directory.cleanup()


def _remove_abandoned() -> None:
    """Remove the folders of this user that no process keeps."""
    import fcntl

    with os.scandir(gettempdir()) as entries:
        paths = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    for path in paths:
        with suppress(OSError), ExitStack() as stack:  # it is no folder, or kept, or another server removes it
            descriptor = _open(path)
            stack.callback(os.close, descriptor)
            if os.fstat(descriptor).st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
                _log.debug("removed %s, which a server that was killed has left", path)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
