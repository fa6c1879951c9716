"""Completion of arguments."""

import pytest
from mcp import MCPError
from mcp_types import Completion, PromptReference, ResourceTemplateReference

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import by_every_way

pytestmark = pytest.mark.asyncio(loop_scope="session")

REVIEW, TRIP = PromptReference(name="review"), PromptReference(name="trip")
NOTE = ResourceTemplateReference(uri="notes://{name}")


@by_every_way
async def test_choices_complete_themselves(peer: IPeer) -> None:
    """An argument with a fixed set of values suggests the values that start with the typed text."""
    assert (await peer.complete(REVIEW, "language", "p")).values == ["python", "perl"]
    assert (await peer.complete(REVIEW, "strict", "t")).values == ["true"]


@by_every_way
async def test_what_is_known_counts(peer: IPeer) -> None:
    """Suggestions can depend on arguments that are already filled in."""
    assert (await peer.complete(TRIP, "city", "Pa", {"country": "france"})).values == ["Paris", "Pau"]
    assert (await peer.complete(TRIP, "city", "Pa", {"country": "peru"})).values == ["Paita"]


@by_every_way
async def test_a_template_completes_its_variables(peer: IPeer) -> None:
    """A variable of a template is completed like an argument of a prompt."""
    assert (await peer.complete(NOTE, "name", "sh")).values == ["shopping"]


@by_every_way
async def test_a_suggestion_says_that_there_is_more(peer: IPeer) -> None:
    """A truncated list of suggestions includes the total number."""
    assert await peer.complete(TRIP, "country", "") == Completion(values=["france", "peru"], total=195, has_more=True)


@by_every_way
async def test_nothing_to_complete(peer: IPeer) -> None:
    """Completing an unknown prompt or template is an error."""
    for reference in (PromptReference(name="revue"), ResourceTemplateReference(uri="no://{thing}")):
        with pytest.raises(MCPError) as caught:
            await peer.complete(reference, "language", "p")
        assert caught.value.error.code == -32602
