"""Prompts: listing and getting."""

import pytest
from mcp import MCPError
from mcp_types import EmbeddedResource, ImageContent, TextContent, TextResourceContents

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import by_every_way
from tests.support.clients.simulated_user import words

pytestmark = pytest.mark.asyncio(loop_scope="session")


@by_every_way
async def test_prompts_are_listed_with_their_arguments(peer: IPeer) -> None:
    """The list shows all prompts, their descriptions and their required arguments."""
    listed = {prompt.name: prompt for prompt in await peer.prompts()}
    review = listed["review"]
    assert (review.title, review.description) == ("Code review", "Ask for a review.")
    assert review.arguments is not None
    told = [(argument.name, argument.description, bool(argument.required)) for argument in review.arguments]
    assert told == [("language", "What the code is written in.", True), ("strict", "Whether to be strict.", False)]
    assert not listed["interview"].arguments


@by_every_way
async def test_arguments_reach_a_prompt(peer: IPeer) -> None:
    """Arguments are converted to the types of the prompt, and missing ones get their defaults."""
    for arguments, expected in (
        ({"language": "perl"}, "Review this perl code."),
        ({"language": "rust", "strict": "true"}, "Review this rust code, strictly."),
    ):
        (message,) = (await peer.get_prompt("review", arguments)).messages
        assert message.role == "user"
        assert message.content == TextContent(text=expected)


@by_every_way
async def test_messages_hold_what_a_prompt_gave(peer: IPeer) -> None:
    """Messages keep their roles, images and resources."""
    result = await peer.get_prompt("trip", {"country": "peru", "city": "Lima"})
    assert [message.role for message in result.messages] == ["user", "assistant", "user", "user"]
    _, answer, picture, guide = (message.content for message in result.messages)
    assert answer == TextContent(text="With pleasure")
    assert picture == ImageContent(data="iVBORw0KGgoA/w==", mime_type="image/png")
    assert isinstance(guide, EmbeddedResource)
    assert guide.resource == TextResourceContents(uri="guide://trip", text="Pack light", mime_type="text/plain")


@by_every_way
async def test_a_prompt_asks(peer: IPeer) -> None:
    """A prompt can ask the user a question while the client waits."""
    peer.person.fill_in = words("gills")
    result = await peer.get_prompt("interview")
    assert result.description == "About gills"
    assert [message.content for message in result.messages] == [TextContent(text="Talk about gills")]
    assert [question.message for question in peer.person.questions] == ["About what?"]


@by_every_way
async def test_wrong_requests_are_explained(peer: IPeer) -> None:
    """Unknown prompts, missing arguments and invalid arguments are errors with an explanation."""
    for name, arguments, expected in (
        ("revue", {}, r"Prompt not found: revue \(did you mean 'review'\?\)"),
        ("review", {}, "language"),
        ("review", {"language": "cobol"}, "language"),
    ):
        with pytest.raises(MCPError, match=expected) as caught:
            await peer.get_prompt(name, arguments)
        assert caught.value.error.code == -32602
