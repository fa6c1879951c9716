"""Query words compared with the words of the registry, tolerating typing errors."""

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass
from math import fsum
from typing import Final, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

_MIN_SIMILARITY: Final = 0.82
"""Allows one wrong letter in six. Words of up to five letters must match exactly."""


class Likeness(NamedTuple):
    """A word of the query, a similar known word, and their similarity, up to 1."""

    asked: str
    known: str
    degree: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The words of a query, and the known words that are similar to them."""

    words: Set[str]
    likenesses: tuple[Likeness, ...]

    @classmethod
    def of(cls, words: Set[str], known: Collection[str]) -> "Reading":
        """Compare every word of a query with every known word."""
        return cls(words, tuple(likeness for word in words for likeness in _likenesses(word, known)))

    def hit(self, keywords: Set[str]) -> float:
        """Return how well the query matches its best keyword, from 0 to 1."""
        return max((likeness.degree for likeness in self.likenesses if likeness.known in keywords), default=0.0)

    def overlap(self, pattern: Set[str], weight: Callable[[str], float]) -> float:
        """Return the weighted share of words that the query and the pattern have in common, from 0 to 1."""
        asked: dict[str, float] = {}
        known: dict[str, float] = {}
        for likeness in self.likenesses:
            if likeness.known in pattern:
                asked[likeness.asked] = max(likeness.degree, asked.get(likeness.asked, 0.0))
                known[likeness.known] = max(likeness.degree, known.get(likeness.known, 0.0))
        if not known:
            return 0.0
        common = fsum(degree * weight(word) for side in (asked, known) for word, degree in side.items())
        return common / fsum(weight(word) for side in (self.words, pattern) for word in side)


def _likenesses(word: str, known: Collection[str]) -> list[Likeness]:
    found = process.extract(word, known, scorer=OSA.normalized_similarity, score_cutoff=_MIN_SIMILARITY, limit=None)
    return [Likeness(word, other, degree) for other, degree, _ in found]
