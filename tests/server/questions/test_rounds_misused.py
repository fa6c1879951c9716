"""Code that misuses questions in rounds."""

import asyncio
import itertools
import logging

import pytest

from axolotl_core import Context, tool
from tests.support.peers.memory_peer import ACCEPTED, Peer, container_with, conversing, text_of
from tests.support.tools import Name


@tool
async def collect(context: Context) -> str:
    """Catch every exception."""
    answers = await asyncio.gather(context.ask(Name, "Who?", key="who"), return_exceptions=True)
    return f"{answers[0]}"


@tool
async def confuse(context: Context) -> str:
    """Ask two different questions with the same key."""
    await asyncio.gather(context.ask(Name, "One?", key="same"), context.ask(Name, "Two?", key="same"))
    return "never"


def waver() -> tuple[object, ...]:
    numbers = itertools.count()

    @tool
    async def ask_anew(context: Context) -> str:
        """Ask a different question in every run."""
        return (await context.ask(Name, f"Who, for the {next(numbers)}th time?", key="who")).name

    return (ask_anew,)


async def test_code_that_catches_the_question_is_not_believed() -> None:
    """If code catches the suspension, its result is dropped, and the question is asked."""
    async with conversing(container_with((collect,))) as host:
        peer = Peer(host)
        result = (await peer.ask("tools/call", {"name": "collect"}))["result"]
        assert result["inputRequests"].keys() == {"who"}
        params = {"name": "collect", "inputResponses": {"who": ACCEPTED}, "requestState": result["requestState"]}
        assert text_of(await peer.ask("tools/call", params, id=2)) == "name='Ann'"


async def test_two_questions_under_one_key_are_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    """Two questions with the same key fail the call, with an explanation in the log."""
    async with conversing(container_with((confuse,))) as host:
        reply = await Peer(host).ask("tools/call", {"name": "confuse"})
        assert reply["result"]["isError"] is True
        assert "two questions have the key 'same'" in caplog.text


async def test_a_question_that_changes_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """An answer to a changed question is ignored, with a warning in the log."""
    caplog.set_level(logging.WARNING, "axolotl")
    async with conversing(container_with(waver())) as host:
        peer = Peer(host)
        result = (await peer.ask("tools/call", {"name": "ask_anew"}))["result"]
        params = {"name": "ask_anew", "inputResponses": {"who": ACCEPTED}, "requestState": result["requestState"]}
        again = (await peer.ask("tools/call", params, id=2))["result"]
        assert again["resultType"] == "input_required"
        assert "the question 'who' has a different text in each run" in caplog.text


@tool
async def visit(context: Context) -> str:
    """Send the user to a page, and notify the client when it is done."""
    await context.ask_url("https://example.com/pay", "Pay?", reference="visit-7")
    context.url_completed("visit-7")
    return "paid"


async def test_the_end_of_a_visit_is_told() -> None:
    """The notification has the id of the question."""
    async with conversing(container_with((visit,))) as host:
        peer = await Peer(host).shake_hands()
        peer.call("visit")
        question = await peer.receive()
        assert question["params"]["elicitationId"] == "visit-7"
        peer.answer(question, {"action": "accept"})
        told = await peer.receive()
        assert told["method"] == "notifications/elicitation/complete"
        assert told["params"] == {"elicitationId": "visit-7"}
        assert text_of(await peer.receive()) == "paid"


async def test_revisions_without_visits_hear_nothing_of_them() -> None:
    """The stateless revision has no such notification."""
    async with conversing(container_with((visit,))) as host:
        peer = Peer(host)
        result = (await peer.ask("tools/call", {"name": "visit"}))["result"]
        assert "elicitationId" not in result["inputRequests"]["ask-1"]["params"]
        params = {
            "name": "visit",
            "inputResponses": {"ask-1": {"action": "accept"}},
            "requestState": result["requestState"],
        }
        assert text_of(await peer.ask("tools/call", params, id=2)) == "paid"
