"""Validation rules of a registry that involve several fields."""

from collections.abc import Iterator
from typing import Final

from axolotl_examples.three_good_sources.registry import Category, Registry
from axolotl_examples.three_good_sources.words import STOP_WORDS, words_of

_SOURCES: Final = 3


def faults_of(registry: Registry) -> Iterator[str]:
    """Yield the violated rules, each with its location."""
    yield from _repeated_slugs(registry)
    for index, category in enumerate(registry.categories):
        for fault in (*_source_faults(category), *_pattern_faults(category)):
            yield f"categories[{index}].{fault}"


def _repeated_slugs(registry: Registry) -> Iterator[str]:
    first: dict[str, int] = {}
    for index, category in enumerate(registry.categories):
        taken = first.setdefault(category.slug, index)
        if taken != index:
            yield f"categories[{index}].slug: {category.slug} is already the slug of categories[{taken}]"


def _source_faults(category: Category) -> Iterator[str]:
    if len(category.sources) != _SOURCES:
        yield f"sources: must be exactly three, but there are {len(category.sources)}"
    seen: set[str] = set()
    for index, source in enumerate(category.sources):
        if source.rank != index + 1:
            yield f"sources[{index}].rank: must be {index + 1}, because sources are listed in the order of their ranks"
        if source.url in seen:
            yield f"sources[{index}].url: already occurs in this category"
        seen.add(source.url)


def _pattern_faults(category: Category) -> Iterator[str]:
    for field in ("keywords", "hints", "negative_keywords"):
        for index, term in enumerate(getattr(category, field)):
            stop_words = [word for word in term.split() if word in STOP_WORDS]
            if stop_words:
                yield f"{field}[{index}]: {stop_words[0]} is a stop word, which is never matched"
    terms = [words_of(term) for term in (*category.keywords, *category.hints)]
    for index, pattern in enumerate(category.query_patterns):
        if not any(words_of(pattern) >= term for term in terms):
            yield f"query_patterns[{index}]: contains none of the keywords and hints of the category"
