"""The matches that a search has found so far, and the paths that it has skipped."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from pydantic_core import to_json

from axolotl_examples.keyword_search.models import (
    FileMatches,
    LineMatch,
    SkippedFiles,
    SkipReason,
    UnreadablePath,
    readable,
)

_LISTED_PATHS: Final = 20


class Findings:
    """Collects matches after an offset, up to a number of lines and of bytes, and records whether there are more."""

    def __init__(self, offset: int, max_lines: int, max_bytes: int) -> None:
        self._offset = offset
        self._to_skip = offset
        self._lines_left = max_lines
        self._bytes_left = max_bytes
        self.files: list[FileMatches] = []
        self.match_count = 0
        self.truncated = False

    @property
    def next_offset(self) -> int | None:
        """The offset of the first match that was left out."""
        return self._offset + self.match_count if self.truncated else None

    def add(self, path: str, matches: Iterator[LineMatch]) -> None:
        """Add the matches of a file until a limit is reached."""
        self._to_skip -= sum(1 for _ in islice(matches, self._to_skip))
        taken: list[LineMatch] = []
        for match in matches:
            size = _size_in_reply(match) + (0 if taken else _size_in_reply(readable(path)))
            if not self._lines_left or (size > self._bytes_left and self.match_count + len(taken)):
                self.truncated = True
                break
            self._lines_left -= 1
            self._bytes_left -= size
            taken.append(match)
        if taken:
            self.files.append(FileMatches(file=path, match_count=len(taken), matches=taken))
            self.match_count += len(taken)


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
        self._skipped[reason] += 1

    def fail(self, path: str, error: OSError) -> None:
        self.skip("unreadable")
        self.report(path, error.strerror or str(error))

    def report(self, path: str, reason: str) -> None:
        """List a path that was not read, or not completely, unless there are many."""
        if len(self.unreadable) < _LISTED_PATHS:
            self.unreadable.append(UnreadablePath(path=path, reason=reason))


def _size_in_reply(value: object) -> int:
    """Return the bytes that a value needs in a reply, which contains the report as an object and as quoted text."""
    written = to_json(value)
    return 2 * len(written) + written.count(b'"') + written.count(b"\\")
