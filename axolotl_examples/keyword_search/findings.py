"""The matches that a search has found so far."""

from collections.abc import Iterator
from itertools import islice

from axolotl_examples.keyword_search.models import FileMatches, LineMatch


class Findings:
    """Collects matches up to a limit, and records whether there are more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.files: list[FileMatches] = []
        self.match_count = 0
        self.truncated = False

    def add(self, path: str, matches: Iterator[LineMatch]) -> None:
        """Add the matches of a file until the limit is reached."""
        room = self._limit - self.match_count
        taken = list(islice(matches, room + 1))
        self.truncated = len(taken) > room
        del taken[room:]
        if taken:
            self.files.append(FileMatches(file=path, match_count=len(taken), matches=taken))
            self.match_count += len(taken)
