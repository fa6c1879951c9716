"""Which category a question is about."""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from axolotl_examples.three_good_sources.reading import Reading
from axolotl_examples.three_good_sources.registry import Category, Registry
from axolotl_examples.three_good_sources.words import STOP_WORDS, words_of


@dataclass(frozen=True, slots=True)
class Match:
    """A category, and how well it fits: 0 to 1."""

    category: Category
    score: float


class MatchError(Exception):
    """No category fits a query."""


class EmptyQuery(MatchError):
    """The query has no words."""


class QueryAllStopWords(MatchError):
    """The query has no words but those that people ask with."""


class BelowThreshold(MatchError):
    """Even the closest category is not close enough."""

    def __init__(self, closest: Match) -> None:
        super().__init__(f"{closest.category.slug}: {closest.score:.2f}")
        self.closest = closest


class IMatcher(Protocol):
    """Finds the category that a query is about."""

    def match(self, query: str, threshold: float) -> Match:
        """Give the closest category.

        Raises:
            MatchError: if there is nothing to look for, or nothing scores as high as the threshold.
        """
        ...


class FuzzyMatcher(IMatcher):
    """Compares the words of a query with each category's query patterns and keywords.

    A category scores what its closest pattern has in common with the query, blended with how well a keyword is hit.
    Words that the patterns of several categories share, such as "learn", weigh less than those of a single one.
    """

    def __init__(self, registry: Registry, keyword_weight: float) -> None:
        self._profiles = tuple(map(_Profile.of, registry.by_slug))
        self._spread = Counter(word for profile in self._profiles for word in profile.pattern_words)
        self._known = tuple(self._spread.keys() | {word for profile in self._profiles for word in profile.keywords})
        self._keyword_weight = keyword_weight

    def match(self, query: str, threshold: float) -> Match:
        """Give the closest category; of several with one score, the first in the order of slugs."""
        reading = Reading.of(_wanted(query), self._known)
        matches = (Match(profile.category, self._score(reading, profile)) for profile in self._profiles)
        closest = max(matches, key=lambda match: match.score)
        if closest.score == 0 or closest.score < threshold:
            raise BelowThreshold(closest)
        return closest

    def _score(self, reading: Reading, profile: "_Profile") -> float:
        similarity = max(reading.overlap(pattern, self._weight) for pattern in profile.patterns)
        return similarity + self._keyword_weight * (reading.hit(profile.keywords) - similarity)

    def _weight(self, word: str) -> float:
        return 1 / (self._spread[word] or 1)


@dataclass(frozen=True, slots=True)
class _Profile:
    """A category as words."""

    category: Category
    patterns: tuple[frozenset[str], ...]
    keywords: frozenset[str]

    @classmethod
    def of(cls, category: Category) -> "_Profile":
        patterns = tuple(words_of(pattern) - STOP_WORDS for pattern in category.query_patterns)
        return cls(category, patterns, frozenset(category.keywords))

    @property
    def pattern_words(self) -> frozenset[str]:
        return frozenset().union(*self.patterns)


def _wanted(query: str) -> frozenset[str]:
    words = words_of(query)
    if not words:
        raise EmptyQuery
    if not words - STOP_WORDS:
        raise QueryAllStopWords
    return words - STOP_WORDS
