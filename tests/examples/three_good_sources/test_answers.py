"""The exact texts of the results."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.loading import load_registry
from axolotl_examples.three_good_sources.matcher import IMatcher, Match
from axolotl_examples.three_good_sources.registry import Category
from axolotl_server import InProcessClient, connect
from tests.examples.three_good_sources.desk import Desk

MARKDOWN = re.compile(r"`|\*\*|__|\]\(|^#", re.MULTILINE)


@pytest.fixture
async def at_desk(desk: Desk) -> AsyncIterator[InProcessClient]:
    """Connect to a server with the curator's registry."""
    async with connect(serving(desk.configuration)) as connected:
        yield connected


def serving(configuration: Configuration) -> Any:
    container: Any = Container()
    container.configuration.override(providers.Object(configuration))
    return container


async def test_get_sources(at_desk: InProcessClient, desk: Desk) -> None:
    """A category is shown with its sources in the order of their ranks."""
    outcome = await at_desk.call("get_sources", {"query": "tea"})
    assert outcome.text == (
        "Category: Tea-Brewing\n"
        "Slug: tea-brewing\n"
        "Description: All about tea.\n"
        "\n"
        "Registry Version: 0.1.0\n"
        f"Curator: Ada ({desk.pubkey})\n"
        "\n"
        "Sources:\n"
        "\n"
        "1. Tea 1\n"
        "   URL: https://example.org/tea/1\n"
        "   Type: guide\n"
        "   Why: Number 1.\n"
        "\n"
        "2. Tea 2\n"
        "   URL: https://example.org/tea/2\n"
        "   Type: guide\n"
        "   Why: Number 2.\n"
        "\n"
        "3. Tea 3\n"
        "   URL: https://example.org/tea/3\n"
        "   Type: guide\n"
        "   Why: Number 3."
    )


async def test_no_match(at_desk: InProcessClient) -> None:
    """If nothing matches, the error names the closest category, its score and all categories."""
    outcome = await at_desk.call("get_sources", {"query": "make lemonade"})
    assert outcome.is_error
    assert outcome.text == (
        "No matching category found for query 'make lemonade'. Closest match: coffee-roasting (score: 0.12). "
        "Available categories: coffee-roasting, tea-brewing."
    )


async def test_stop_words(at_desk: InProcessClient) -> None:
    """A query of only stop words has its own message."""
    outcome = await at_desk.call("get_sources", {"query": "What is the best?"})
    assert outcome.is_error
    assert outcome.text == (
        "Query contains only common words (stop words) with no searchable content. Try more specific terms."
    )


async def test_list_categories(at_desk: InProcessClient) -> None:
    """Categories are sorted by slug and have the words of the slug as tags."""
    assert (await at_desk.call("list_categories")).text == (
        "Categories (2):\n"
        "\n"
        "- coffee-roasting: Coffee-Roasting\n"
        "  All about coffee.\n"
        "  Tags: coffee, roasting\n"
        "- tea-brewing: Tea-Brewing\n"
        "  All about tea.\n"
        "  Tags: tea, brewing"
    )


async def test_get_provenance(at_desk: InProcessClient, desk: Desk) -> None:
    """The provenance contains everything needed for verification."""
    file = load_registry(desk.configuration)
    assert (await at_desk.call("get_provenance")).text == (
        "Curator: Ada\n"
        f"Public Key: {desk.pubkey}\n"
        "Registry Version: 0.1.0\n"
        "Last Updated: 2026-01-02\n"
        "Endorsements: 0 endorsement(s)\n"
        "\n"
        "Verification:\n"
        "This registry is curated by Ada. Source authenticity can be verified\n"
        "using the PKARR public key above. Each source is manually researched\n"
        "and vetted for quality. The registry is cryptographically signed to\n"
        "prevent tampering.\n"
        "\n"
        "Signed File: registry.json\n"
        f"Digest: {file.digest}\n"
        f"Signature (Ed25519): {desk.signature.read_text(encoding='ascii').strip()}\n"
        "Command: python -m axolotl_examples.three_good_sources verify"
    )


async def test_unsigned(desk: Desk) -> None:
    """Without a trusted key, an unsigned registry is served, and the provenance makes no claims."""
    desk.write(lambda document: document["curator"].update(pubkey=None))
    desk.signature.unlink()
    unsigned = desk.configuration.model_copy(update={"public_key_file": None})
    async with connect(serving(unsigned)) as client:
        provenance = (await client.call("get_provenance")).text
        sources = (await client.call("get_sources", {"query": "tea"})).text
    assert "Public Key: Not yet configured\n" in provenance
    assert "It is not signed yet" in provenance
    assert "Signature" not in provenance
    assert "Curator: Ada (Not yet configured)\n" in sources


async def test_no_endorsements(at_desk: InProcessClient) -> None:
    """An empty list is explained."""
    assert (await at_desk.call("get_endorsements")).text == (
        "Endorsements: 0\n"
        "\n"
        "This registry does not yet have any endorsements. Endorsements allow\n"
        "other curators to vouch for the quality of this registry's sources.\n"
        "This feature will be available in a future version."
    )


async def test_endorsements(desk: Desk) -> None:
    """Endorsements are listed, and counted in the provenance."""
    endorsement = {"name": "Grace", "pubkey": desk.pubkey, "why": "She tastes before she writes."}
    desk.write(lambda document: document.update(endorsements=[endorsement]))
    desk.sign()
    async with connect(serving(desk.configuration)) as client:
        assert (await client.call("get_endorsements")).text == (
            f"Endorsements: 1\n\n- Grace ({desk.pubkey})\n  She tastes before she writes."
        )
        assert "Endorsements: 1 endorsement(s)\n" in (await client.call("get_provenance")).text


async def test_plain_text(client: InProcessClient) -> None:
    """No result of the shipped registry contains Markdown."""
    categories = Container().sources().categories
    queries = [{"query": category.query_patterns[0]} for category in categories]
    answers = [await client.call("get_sources", query) for query in queries]
    answers += [await client.call(name) for name in ("list_categories", "get_provenance", "get_endorsements")]
    assert not any(answer.is_error or MARKDOWN.search(answer.text) for answer in answers)


class Obliging(IMatcher):
    """A matcher that returns a fixed category and records its arguments."""

    def __init__(self, category: Category) -> None:
        self.category = category
        self.thresholds: list[float] = []

    def match(self, query: str, threshold: float) -> Match:
        self.thresholds.append(threshold)
        return Match(self.category, 1.0)


async def test_services_are_injected(desk: Desk) -> None:
    """The container injects the matcher and the default threshold; a call's threshold overrides it, even 0."""
    container = serving(desk.configuration.model_copy(update={"threshold": 0.7}))
    matcher = Obliging(container.sources().categories[0])
    container.matcher.override(providers.Object(matcher))
    async with connect(container) as client:
        assert "Tea-Brewing" in (await client.call("get_sources", {"query": "anything"})).text
        await client.call("get_sources", {"query": "anything", "threshold": 0})
        await client.call("get_sources", {"query": "anything", "threshold": None})
    assert matcher.thresholds == [0.7, 0.0, 0.7]
