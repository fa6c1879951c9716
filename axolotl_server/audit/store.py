"""The port of what a sink writes into."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from axolotl_core.audit import AuditRecord

__all__ = ["IRecordStore"]


class IRecordStore(ABC):
    """Keeps records in a chain; spoken to by one thread at a time."""

    @abstractmethod
    def open(self) -> None:
        """Find the end of the chain, mend what a crash left behind, and write down both.

        Raises:
            ConfigurationError: if what is there cannot be continued.
            OSError: if it cannot be reached.
        """

    @abstractmethod
    def append(self, records: Sequence[AuditRecord]) -> None:
        """Hand records to the system: all of them, or none if it raises something."""

    @abstractmethod
    def sync(self) -> None:
        """Wait until everything appended is on the disk."""

    @abstractmethod
    def close(self) -> None:
        """Write down that the log was closed, and let go of it."""
