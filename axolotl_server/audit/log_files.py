"""The files of an audit log, and the lock that gives it to one process."""

import fcntl
import glob
import os
import re
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from axolotl_core.errors import ConfigurationError
from axolotl_server.audit.chain import read_link
from axolotl_server.settings.policies import WORKER

_MAX_START_BYTES: Final = 1024 * 1024
_COMPANION: Final = re.compile(r".*(\.lock|\.torn-[0-9]+-[0-9]+)")
"""Files that lie next to a log."""
_VERIFICATION_SECONDS: Final = 0.02
"""How long a verification may hold the lock of a log, at most."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Segment(NamedTuple):
    """A full file of a log."""

    first: int
    path: Path


def segment_path(path: Path, first: int) -> Path:
    """Return the path of a full file whose first record has this number."""
    return path.with_name(f"{path.name}.{first:012d}")


def previous_segments(path: Path) -> list[Segment]:
    """Find the full files of a log, oldest first."""
    pattern = re.compile(re.escape(path.name) + r"\.([0-9]{12,18})")
    found = ((pattern.fullmatch(name), name) for name in os.listdir(path.parent))
    return sorted(Segment(int(match[1]), path.with_name(name)) for match, name in found if match is not None)


def find_logs(place: Path) -> list[Path]:
    """Find the current files of all logs in a directory, or of those whose names match a pattern.

    `{worker}` in a pattern stands for any text. A path without a pattern is the log itself.
    """
    if place.is_dir():
        paths = [path for path in place.iterdir() if not path.name.startswith(".") and _is_log(path)]
    elif is_pattern(place):
        pattern = _pattern(place)
        names = [*glob.iglob(pattern), *glob.iglob(f"{pattern}.{'[0-9]' * 12}*")]
        paths = [Path(name) for name in names if Path(name).is_file()]
    else:
        return [place]
    # The older files of a log belong to its current one.
    current = {path.with_name(re.sub(r"\.[0-9]{12,18}$", "", path.name)) for path in paths}
    return sorted(path for path in current if _COMPANION.fullmatch(path.name) is None)


def is_pattern(place: Path) -> bool:
    """Whether a path stands for all logs that match it, even if a file has exactly this name."""
    return WORKER in str(place) or any(character in place.name for character in "*?[")


def covers(place: Path, log: Path) -> bool:
    """Whether a directory or a pattern stands for a log, among others; both paths are absolute."""
    if place.is_dir():
        return log.parent == place
    return is_pattern(place) and fnmatchcase(str(log), _pattern(place))


def _pattern(place: Path) -> str:
    return str(Path(glob.escape(str(place.parent)), place.name)).replace(WORKER, "*")


def _is_log(path: Path) -> bool:
    """Recognize a log by its content."""
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        start = opened.read(_MAX_START_BYTES)
    return read_link(start.partition(b"\n")[0]) is not None


def sync_directory(path: Path) -> None:
    """Wait until the names of the files are on disk."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_regular(path: Path) -> None:
    """Check that a log is a regular file or does not exist; raises ConfigurationError if not.

    A link could lead to a file of another program, which would be changed.
    """
    if path.is_symlink():
        raise ConfigurationError(f"The audit log {path} is a symbolic link: set the path that it points to")
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"The audit log {path} is not a regular file")


class LogLock:
    """A lock file beside a log; the system releases the lock however the process ends.

    Two processes would each continue the chain in their own way.
    """

    def __init__(self, path: Path) -> None:
        """Acquire the lock; raises ConfigurationError if another process holds it, OSError if there is no access."""
        self._descriptor = os.open(_lock_path(path), _FLAGS, 0o600)
        if _is_locked(self._descriptor, fcntl.LOCK_EX):
            time.sleep(_VERIFICATION_SECONDS)
            if _is_locked(self._descriptor, fcntl.LOCK_EX):
                os.close(self._descriptor)
                raise ConfigurationError(
                    f"The audit log {path} is in use by another process: give each server its own log, for example "
                    f"with {WORKER} in its name"
                )

    def release(self) -> None:
        """Release the lock; the file stays, because another process may be about to lock it."""
        os.close(self._descriptor)


def is_in_use(path: Path) -> bool:
    """Whether a process has locked a log, as far as this one may know."""
    try:
        descriptor = os.open(_lock_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return _is_locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _is_locked(descriptor: int, kind: int) -> bool:
    """Try to lock a file; return whether another process has locked it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
