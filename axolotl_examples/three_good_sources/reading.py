"""Query words compared with the words of the registry, tolerating inflections and typing errors."""

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass
from math import fsum
from typing import Final, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from axolotl_examples.three_good_sources.words import STOP_WORDS, stem

_MIN_SIMILARITY: Final = 0.82
"""Allows one wrong letter in six. Words of up to five letters must match exactly."""
_SAME_STEM: Final = 0.95
_MAX_NAME_TOKENS: Final = 6


class Likeness(NamedTuple):
    """A word of the query, a similar known word, and their similarity, up to 1."""

    asked: str
    known: str
    degree: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The words of a query, and the known words that are similar to them."""

    words: Set[str]
    """The words without stop words."""
    stems: Set[str]
    joined: Set[str]
    """Neighboring words, stop words included, joined to one: the names of sources are written in many ways."""
    likenesses: tuple[Likeness, ...]

    @classmethod
    def of(cls, tokens: Sequence[str], known: Collection[str]) -> "Reading":
        """Compare every word of a query with every known word."""
        words = frozenset(tokens) - STOP_WORDS
        by_stem: dict[str, list[str]] = {}
        for other in known:
            by_stem.setdefault(stem(other), []).append(other)
        return cls(
            words,
            frozenset(map(stem, words)),
            frozenset(_joined(tokens)),
            tuple(likeness for word in words for likeness in _likenesses(word, known, by_stem)),
        )

    def degree_of(self, term: Sequence[str]) -> float:
        """Return how well the query matches all words of a term, from 0 to 1, whether separated or not."""
        if "".join(term) in self.joined:
            return 1.0
        best = dict.fromkeys(term, 0.0)
        for likeness in self.likenesses:
            if likeness.known in best:
                best[likeness.known] = max(likeness.degree, best[likeness.known])
        return min(best.values())

    def words_like(self, known: Collection[str]) -> Set[str]:
        """Return the words of the query that are similar to known words."""
        return {likeness.asked for likeness in self.likenesses if likeness.known in known}

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


def _joined(tokens: Sequence[str]) -> set[str]:
    starts = range(len(tokens))
    return {"".join(tokens[start : start + count]) for start in starts for count in range(1, _MAX_NAME_TOKENS + 1)}


def _likenesses(word: str, known: Collection[str], by_stem: dict[str, list[str]]) -> list[Likeness]:
    found = process.extract(word, known, scorer=OSA.normalized_similarity, score_cutoff=_MIN_SIMILARITY, limit=None)
    degrees = {other: degree for other, degree, _ in found}
    for other in by_stem.get(stem(word), ()):
        degrees[other] = max(_SAME_STEM, degrees.get(other, 0.0))
    return [Likeness(word, other, degree) for other, degree in degrees.items()]
