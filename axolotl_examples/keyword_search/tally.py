"""What a search counts besides its matches."""

from collections import Counter
from enum import StrEnum
from typing import Final

from axolotl_examples.keyword_search.models import SkippedFiles, UnreadablePath

_LISTED_PATHS: Final = 20


class SkipReason(StrEnum):
    """Why something was passed over; the names of the fields of `SkippedFiles`."""

    BINARY = "binary"
    TOO_LARGE = "too_large"
    IGNORED = "ignored"
    LINK = "links"
    SPECIAL = "special"
    UNREADABLE = "unreadable"


class Tally:
    """Counts what was passed over, and keeps the first paths that could not be read."""

    def __init__(self) -> None:
        self._skipped: Counter[str] = Counter()
        self.files_searched = 0
        self.unreadable: list[UnreadablePath] = []

    @property
    def skipped(self) -> SkippedFiles:
        """How much was passed over."""
        return SkippedFiles.model_validate(self._skipped)

    def skip(self, reason: SkipReason) -> None:
        """Note that something was passed over."""
        self._skipped[reason.value] += 1

    def fail(self, path: str, error: OSError) -> None:
        """Note that a path could not be read."""
        self.skip(SkipReason.UNREADABLE)
        if len(self.unreadable) < _LISTED_PATHS:
            self.unreadable.append(UnreadablePath(path=path, reason=error.strerror or str(error)))
