"""The matches that a search has found so far."""

from collections.abc import Iterator
from itertools import islice

from pydantic_core import to_json

from axolotl_examples.keyword_search.models import FileMatches, LineMatch, readable


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


def _size_in_reply(value: object) -> int:
    """Return the bytes that a value needs in a reply, which contains the report as an object and as quoted text."""
    written = to_json(value)
    return 2 * len(written) + written.count(b'"') + written.count(b"\\")
