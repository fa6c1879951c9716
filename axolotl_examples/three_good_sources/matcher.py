"""A matcher that finds the category of a query."""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from axolotl_examples.three_good_sources.evidence import Evidence
from axolotl_examples.three_good_sources.reading import Reading
from axolotl_examples.three_good_sources.registry import Category, Registry
from axolotl_examples.three_good_sources.words import STOP_WORDS, tokens_of, words_of


@dataclass(frozen=True, slots=True)
class Match:
    """A category and its score, from 0 to 1."""

    category: Category
    score: float


class MatchError(Exception):
    """No category matches a query."""


class EmptyQuery(MatchError):
    """The query has no words."""


class QueryAllStopWords(MatchError):
    """The query consists of stop words only."""


class BelowThreshold(MatchError):
    """The score of the closest category is below the threshold."""

    def __init__(self, closest: Match) -> None:
        super().__init__(f"{closest.category.slug}: {closest.score:.2f}")
        self.closest = closest


class IMatcher(Protocol):
    """Finds the category of a query."""

    def match(self, query: str, threshold: float) -> Match:
        """Return the closest category.

        Raises `MatchError` if the query has no searchable words or no category reaches the threshold.
        """
        ...


class FuzzyMatcher(IMatcher):
    """Compares the words of a query with each category's query patterns, and looks for evidence of its topic.

    The score of a category combines the overlap with its closest pattern and the best keyword match. Words that occur
    in the patterns of several categories, such as "learn", have less weight. Keywords and names of sources raise the
    score, so that they are enough for a match; a score without such evidence is lowered.
    """

    def __init__(self, registry: Registry, keyword_weight: float) -> None:
        self._profiles = tuple(map(_Profile.of, registry.by_slug))
        evidences = [profile.evidence for profile in self._profiles]
        self._categories_by_word = Counter(word for evidence in evidences for word in evidence.pattern_words)
        self._known = tuple({*self._categories_by_word}.union(*(evidence.words for evidence in evidences)))
        self._keyword_weight = keyword_weight

    def match(self, query: str, threshold: float) -> Match:
        """Return the closest category, or the first by slug if several have the same score."""
        tokens = tokens_of(query)
        if not tokens:
            raise EmptyQuery
        if STOP_WORDS.issuperset(tokens):
            raise QueryAllStopWords
        reading = Reading.of(tokens, self._known)
        matches = (Match(profile.category, self._score(reading, profile)) for profile in self._profiles)
        closest = max(matches, key=lambda match: match.score)
        if closest.score == 0 or closest.score < threshold:
            raise BelowThreshold(closest)
        return closest

    def _score(self, reading: Reading, profile: "_Profile") -> float:
        overlap = max(reading.overlap(pattern, self._weight) for pattern in profile.patterns)
        similarity = overlap + self._keyword_weight * (profile.evidence.hit(reading) - overlap)
        return profile.evidence.score(reading, similarity, self._weight)

    def _weight(self, word: str) -> float:
        return 1 / (self._categories_by_word[word] or 1)


@dataclass(frozen=True, slots=True)
class _Profile:
    """The words of a category."""

    category: Category
    patterns: tuple[frozenset[str], ...]
    evidence: Evidence

    @classmethod
    def of(cls, category: Category) -> "_Profile":
        patterns = tuple(words_of(pattern) - STOP_WORDS for pattern in category.query_patterns)
        return cls(category, patterns, Evidence.of(category, frozenset().union(*patterns)))
