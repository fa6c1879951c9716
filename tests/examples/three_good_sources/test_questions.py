"""Questions as people ask them: which category they find, if any."""

from collections.abc import Iterable, Mapping

import pytest

from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.matcher import FuzzyMatcher, MatchError
from axolotl_examples.three_good_sources.registry import Category
from axolotl_server import connect
from tests.examples.three_good_sources.questions import (
    MORE_OTHER_QUESTIONS,
    MORE_QUESTIONS,
    OTHER_QUESTIONS,
    QUESTIONS,
)

REGISTRY = Container().sources()
MATCHER = FuzzyMatcher(REGISTRY, keyword_weight=0.25)
EVERY_CATEGORY = pytest.mark.parametrize("category", REGISTRY.categories, ids=lambda category: category.slug)

LONG = (
    "I have been writing services in another language for about ten years, mostly for logistics companies, and my team "
    "wants to replace the slowest parts. We looked at several options over the last months, talked to other teams, and "
    "in the end everybody preferred Rust. None of us has any experience with it, so I am collecting material that is "
    "good enough for people who know how to develop software but have never had to think about memory. "
)


def found(query: str) -> str | None:
    """Return the slug of the category that a query finds with the default threshold."""
    try:
        return MATCHER.match(query, 0.4).category.slug
    except MatchError:
        return None


def wrong(questions: Mapping[str, Iterable[str]], others: Iterable[str]) -> dict[str, str | None]:
    """Return the questions that find the wrong category, with what they find."""
    expected: dict[str, str | None] = {query: slug for slug, queries in questions.items() for query in queries}
    expected |= dict.fromkeys(others)
    return {query: found(query) for query, slug in expected.items() if found(query) != slug}


def test_table() -> None:
    """Every question of the table finds its category, and questions about other topics find nothing."""
    assert wrong(QUESTIONS, OTHER_QUESTIONS) == {}


def test_generalization() -> None:
    """Questions that the matcher was not written for are answered equally well, with one known exception."""
    assert wrong(MORE_QUESTIONS, MORE_OTHER_QUESTIONS) == {"selfhosted mail": None}


@EVERY_CATEGORY
def test_terms(category: Category) -> None:
    """Every keyword and every hint finds its category, on its own and with a capital letter."""
    terms = (*category.keywords, *category.hints)
    assert {term: found(term.title()) for term in terms} == dict.fromkeys(terms, category.slug)


@EVERY_CATEGORY
def test_sources(category: Category) -> None:
    """The name of every source finds its category, as written, in a question, and with a typing error."""
    for source in category.sources:
        assert found(source.name) == category.slug
        assert found(f"is {source.name} any good?") == category.slug
    typing_errors = {"KeePassXC": "keepasxc", "Bitwarden": "bitwarten", "Zigbee2MQTT": "zigbe2mqtt"}
    for name, misspelled in typing_errors.items():
        if any(name in source.name for source in category.sources):
            assert found(misspelled) == category.slug


@pytest.mark.parametrize(
    ("query", "supported"),
    [
        ("rust on my car", "rust ownership in software for a car"),
        ("buy bitcoin", "install bitcoin core before I buy some"),
        ("a movie database", "psql with a movie database"),
    ],
)
def test_negative_keywords(query: str, supported: str) -> None:
    """A negative keyword rules out a category, unless another word belongs to that category only."""
    assert found(query) is None
    assert found(supported) is not None


async def test_long_questions() -> None:
    """A question can be long; the schema states the limit."""
    async with connect(Container()) as client:
        [schema] = [one["inputSchema"] for one in await client.list_tools() if one["name"] == "get_sources"]
        limit = schema["properties"]["query"]["maxLength"]
        long = (LONG * 20)[:limit]
        answer = await client.call("get_sources", {"query": long})
        too_long = await client.call("get_sources", {"query": long + "?"})
    assert limit == 4000
    assert "Slug: rust-learning" in answer.text
    assert too_long.text == f"Invalid arguments: query: String should have at most {limit} characters"
