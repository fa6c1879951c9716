"""Counts of searched, skipped and unreadable files."""

from collections import Counter
from enum import StrEnum
from typing import Final

from axolotl_examples.keyword_search.models import SkippedFiles, UnreadablePath

_LISTED_PATHS: Final = 20


class SkipReason(StrEnum):
    """Reasons for skipping a path: the field names of `SkippedFiles`."""

    BINARY = "binary"
    TOO_LARGE = "too_large"
    IGNORED = "ignored"
    LINK = "links"
    SPECIAL = "special"
    UNREADABLE = "unreadable"


class Tally:
    """Counts skipped paths, and lists the first ones that could not be read."""

    def __init__(self) -> None:
        self._skipped: Counter[str] = Counter()
        self.files_searched = 0
        self.unreadable: list[UnreadablePath] = []

    @property
    def skipped(self) -> SkippedFiles:
        return SkippedFiles.model_validate(self._skipped)

    def skip(self, reason: SkipReason) -> None:
        self._skipped[reason.value] += 1

    def fail(self, path: str, error: OSError) -> None:
        self.skip(SkipReason.UNREADABLE)
        self.report(path, error.strerror or str(error))

    def report(self, path: str, reason: str) -> None:
        """List a path that was not read, or not completely, unless there are many."""
        if len(self.unreadable) < _LISTED_PATHS:
            self.unreadable.append(UnreadablePath(path=path, reason=reason))
