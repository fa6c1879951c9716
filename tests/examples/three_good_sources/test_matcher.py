"""Matching of queries to categories."""

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.matcher import (
    BelowThreshold,
    EmptyQuery,
    FuzzyMatcher,
    Match,
    MatchError,
    QueryAllStopWords,
)
from axolotl_examples.three_good_sources.registry import Category, Registry
from axolotl_examples.three_good_sources.words import STOP_WORDS, words_of

REGISTRY: Registry = Container().sources()
MATCHER = FuzzyMatcher(REGISTRY, keyword_weight=0.25)

KNOWN = sorted(
    {word for category in REGISTRY.categories for pattern in category.query_patterns for word in words_of(pattern)}
)
WORDS = st.sampled_from(KNOWN) | st.from_regex(r"[a-z]{1,12}", fullmatch=True)
QUESTIONS = st.lists(WORDS, min_size=1, max_size=8).filter(lambda words: not STOP_WORDS.issuperset(words))
SHARES = st.floats(0, 1)

some_examples = settings(max_examples=30)


def closest(matcher: FuzzyMatcher, query: str) -> Match:
    """Return the closest category, regardless of the threshold."""
    try:
        return matcher.match(query, 0.0)
    except BelowThreshold as error:
        return error.closest


def found(query: str, threshold: float) -> str | None:
    try:
        return MATCHER.match(query, threshold).category.slug
    except MatchError:
        return None


@some_examples
@given(QUESTIONS, SHARES)
def test_score_is_a_share(words: list[str], keyword_weight: float) -> None:
    """A score is between 0 and 1 for any keyword weight."""
    assert 0 <= closest(FuzzyMatcher(REGISTRY, keyword_weight), " ".join(words)).score <= 1


@some_examples
@given(st.text(max_size=300), SHARES)
def test_any_text(query: str, threshold: float) -> None:
    """Any text either matches a category with at least the threshold, or raises a MatchError."""
    with contextlib.suppress(MatchError):
        assert threshold <= MATCHER.match(query, threshold).score <= 1


@some_examples
@given(QUESTIONS, st.randoms(use_true_random=False))
def test_order_of_words(words: list[str], chance: random.Random) -> None:
    """Word order and repetition do not matter, except in the names of sources."""
    shuffled = chance.sample(words, len(words)) + words[:1]
    assert closest(MATCHER, " ".join(shuffled)) == closest(MATCHER, " ".join(words))


@some_examples
@given(QUESTIONS, st.permutations(REGISTRY.categories))
def test_order_of_categories(words: list[str], categories: list[Category]) -> None:
    """The order of the categories does not matter, not even for equal scores."""
    shuffled = FuzzyMatcher(REGISTRY.model_copy(update={"categories": tuple(categories)}), keyword_weight=0.25)
    assert closest(shuffled, " ".join(words)) == closest(MATCHER, " ".join(words))


@some_examples
@given(QUESTIONS, SHARES, SHARES)
def test_threshold_is_monotonic(words: list[str], one: float, other: float) -> None:
    """A match stays the same with any lower threshold; a higher one gives the same match or none."""
    low, high = sorted((one, other))
    query = " ".join(words)
    assert found(query, high) in (None, found(query, low))


@some_examples
@given(QUESTIONS)
def test_form_does_not_matter(words: list[str]) -> None:
    """Case, accents and punctuation do not matter."""
    accented = "¿" + ", ".join(word.upper().replace("E", "É") for word in words) + "?!"
    assert closest(MATCHER, accented) == closest(MATCHER, " ".join(words))


@pytest.mark.parametrize("category", REGISTRY.categories, ids=lambda category: category.slug)
def test_patterns_find_their_category(category: Category) -> None:
    """Each query pattern matches its own category with the highest score."""
    for pattern in category.query_patterns:
        assert closest(MATCHER, pattern) == Match(category, 1.0)


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("How do I set up a Bitcoin node?", "bitcoin-node-setup"),
        ("bitcion full node", "bitcoin-node-setup"),
        ("I want to host my own e-mail", "email-self-hosting"),
        ("self-hosted email", "email-self-hosting"),
        ("undo the last commit", "git-version-control"),
        ("smart home", "home-automation-private"),
        ("best resources about the shell", "linux-command-line"),
        ("linux", "linux-command-line"),
        ("where should I store my passwords?", "password-management"),
        ("my postgres query is slow", "postgresql-databases"),
        ("pyhton for beginners", "python-learning"),
        ("rust", "rust-learning"),
        ("a Java developer who would like to learn Rust in order to write embedded firmware", "rust-learning"),
        ("secure my web app", "web-security"),
        ("what is SQL injection", "web-security"),
    ],
)
def test_questions(query: str, slug: str) -> None:
    """Natural questions match the expected category."""
    assert found(query, 0.4) == slug


@pytest.mark.parametrize(
    "query",
    [
        "quantum physics",
        "learn german",
        "learn haskell programming",
        "run a marathon",
        "trust certificate",
        "web design",
    ],
)
def test_other_questions(query: str) -> None:
    """Unrelated questions match nothing, even with a common or similar word."""
    assert found(query, 0.4) is None


def test_nothing_in_common() -> None:
    """Without a common word there is no match, even with a threshold of 0."""
    with pytest.raises(BelowThreshold) as missed:
        MATCHER.match("quantum physics", 0.0)
    assert missed.value.closest.score == 0


@pytest.mark.parametrize("query", ["", " \n", "…", "_", "🦀"])
def test_empty(query: str) -> None:
    """A query without words is empty."""
    with pytest.raises(EmptyQuery):
        MATCHER.match(query, 0.4)


@pytest.mark.parametrize("query", ["the", "What is the best?", "CAN YOU show me some good sources"])
def test_stop_words(query: str) -> None:
    """A query of only stop words has its own error."""
    with pytest.raises(QueryAllStopWords):
        MATCHER.match(query, 0.4)


@pytest.mark.parametrize(("weight", "score"), [(0.0, 0.8), (0.25, 0.85), (1.0, 1.0)])
def test_keywords(weight: float, score: float) -> None:
    """A keyword raises the score by its weight."""
    assert FuzzyMatcher(REGISTRY, weight).match("rust", 0.4).score == pytest.approx(score)
