"""One process a log: two would each continue the chain in their own way."""

import fcntl
import os
import re
from pathlib import Path
from typing import NamedTuple

from axolotl_core.errors import ConfigurationError


class Segment(NamedTuple):
    """A file that is full."""

    first: int
    path: Path


def segment_path(path: Path, first: int) -> Path:
    """Name a full file."""
    return path.with_name(f"{path.name}.{first:012d}")


def previous_segments(path: Path) -> list[Segment]:
    """Find the full files of a log, the oldest first."""
    pattern = re.compile(re.escape(path.name) + r"\.([0-9]{12,18})")
    found = ((pattern.fullmatch(name), name) for name in os.listdir(path.parent))
    return sorted(Segment(int(match[1]), path.with_name(name)) for match, name in found if match is not None)


def sync_directory(path: Path) -> None:
    """Wait until the names of the files are on the disk."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LogLock:
    """A lock beside a log; the system frees it however the process ends."""

    def __init__(self, path: Path) -> None:
        """Take it.

        Raises:
            ConfigurationError: if another process has it.
            OSError: if there can be no file beside the log.
        """
        self._descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise ConfigurationError(
                f"The audit log {path} is in use by another process: give each server a log of its own"
            ) from None

    def release(self) -> None:
        """Give it back; the file stays, as another process may be about to take it."""
        os.close(self._descriptor)
