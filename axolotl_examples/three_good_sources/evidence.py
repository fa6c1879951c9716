"""Evidence in a query for a category: its keywords, its hints and the names of its sources."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from axolotl_examples.three_good_sources.reading import Reading
from axolotl_examples.three_good_sources.registry import Category, Source
from axolotl_examples.three_good_sources.words import stem, tokens_of

_NAMED_SOURCE: Final = 0.9
_KEYWORD: Final = 0.6
_HINT: Final = 0.5
_MORE: Final = 0.05
"""What each further word of the category adds to the score of the first one."""
_MOST_FURTHER_WORDS: Final = 4
_WEAK: Final = 0.5
"""The share that remains of a score without evidence."""

_SPECIFIC_WEIGHT: Final = 1.0
"""The weight of words that occur in the patterns of no other category."""
_MIN_HOST_LETTERS: Final = 5
_KINDS: Final = frozenset({"center", "documentation", "exercises", "help", "manual", "reference", "series"})
"""Words at the end of a source's name that people leave out."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a query can contain that shows that it is about a category."""

    keywords: tuple[tuple[str, ...], ...]
    hints: tuple[tuple[str, ...], ...]
    negative_keywords: frozenset[str]
    names: frozenset[str]
    pattern_words: frozenset[str]

    @classmethod
    def of(cls, category: Category, pattern_words: frozenset[str]) -> "Evidence":
        terms = {"".join(tokens_of(term)) for term in (*category.keywords, *category.hints)}
        return cls(
            tuple(map(tokens_of, category.keywords)),
            tuple(map(tokens_of, category.hints)),
            frozenset(map(stem, category.negative_keywords)),
            frozenset(name for source in category.sources for name in _names_of(source)) - terms,
            pattern_words,
        )

    @property
    def words(self) -> frozenset[str]:
        """All words that a query is searched for."""
        return self.names.union(*self.keywords, *self.hints)

    def hit(self, reading: Reading) -> float:
        """Return how well the query matches its best keyword or hint, from 0 to 1."""
        return max(map(reading.degree_of, (*self.keywords, *self.hints)), default=0.0)

    def score(self, reading: Reading, similarity: float, weight: Callable[[str], float]) -> float:
        """Raise the score of a similar pattern if there is evidence, and lower it if there is none."""
        named = max((reading.degree_of((name,)) for name in self.names), default=0.0)
        if named:
            return max(similarity, _NAMED_SOURCE * named)
        keyword = max(map(reading.degree_of, self.keywords))
        hint = max(map(reading.degree_of, self.hints), default=0.0)
        further = self._further_words(reading, weight)
        is_negated = not reading.stems.isdisjoint(self.negative_keywords)
        more = _MORE * min(further, _MOST_FURTHER_WORDS)
        if keyword and (further or not is_negated):
            return max(similarity, keyword * (_KEYWORD + more))
        is_only_a_hint = any(reading.words_like(term) >= reading.words for term in self.hints)
        if hint and (further or is_only_a_hint):
            return max(similarity, hint * (_HINT + more))
        return _WEAK * similarity

    def _further_words(self, reading: Reading, weight: Callable[[str], float]) -> int:
        """Count the words of the query that belong to the category, besides those of the longest keyword or hint."""
        used = [reading.words_like(term) for term in (*self.keywords, *self.hints) if reading.degree_of(term)]
        specific = {word for word in self.pattern_words if weight(word) >= _SPECIFIC_WEIGHT}
        longest = max(used, key=len, default=frozenset())
        return len(frozenset(reading.words_like(specific)).union(*used) - longest)


def _names_of(source: Source) -> Iterator[str]:
    """Yield the name and the host of a source without spaces, for example `usetheindexluke` and `mailcow`."""
    words = list(tokens_of(source.name))
    while len(words) > 1 and words[-1] in _KINDS:
        words.pop()
    yield "".join(words[1:] if words[0] == "the" else words)
    labels: Iterable[str] = (urlsplit(source.url).hostname or "").split(".")[:-1]
    host = "".join(tokens_of(max(labels, key=len)))
    if len(host) >= _MIN_HOST_LETTERS:
        yield host
