"""One process a log: two would each continue the chain in their own way."""

import fcntl
import os
from pathlib import Path

from axolotl_core.errors import ConfigurationError

__all__ = ["LogLock"]


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
