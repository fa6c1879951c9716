"""The files of a log: the current one, and those before it, each named for the number of its first record."""

import os
import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["Segment", "previous_segments", "segment_path", "sync_directory"]


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
