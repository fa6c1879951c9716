"""Questions in the handshake era: waiting, timeouts and cleanup."""

import asyncio
import gc
import random
from collections import Counter
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, Declined, ITool, NoArguments, tool
from axolotl_server import ServerHost
from tests.support.peers.memory_peer import ACCEPTED, Peer, container_with, conversing, text_of
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Name, ask_name

MOMENT = 0.2
"""A short timeout."""


@tool(timeout_seconds=MOMENT)
async def hasty(context: Context) -> str:
    """Ask with a short timeout."""
    return (await context.ask(Name, "Who?")).name


@tool(timeout_seconds=MOMENT)
async def asleep() -> str:
    """Exceed the same timeout."""
    await asyncio.Event().wait()
    return "awake"


@tool(timeout_seconds=MOMENT)
async def dawdle(context: Context) -> str:
    """Ask, and then exceed the timeout."""
    await context.ask(Name, "Who?")
    await asyncio.Event().wait()
    return "never"


@tool(timeout_seconds=MOMENT)
async def hasty_pair(context: Context) -> str:
    """Ask two questions at once with a short timeout."""
    one, two = await asyncio.gather(context.ask(Name, "One?"), context.ask(Name, "Two?"))
    return f"{one.name} {two.name}"


@tool(execution="thread", timeout_seconds=MOMENT)
async def hasty_thread(context: Context) -> str:
    """The same from a thread."""
    return (await context.ask(Name, "Who?")).name


@tool(execution="thread")
async def threaded(context: Context) -> str:
    """Ask from an event loop in a thread."""
    return (await context.ask(Name, "Who?")).name


@tool(execution="thread")
async def threaded_pair(context: Context) -> str:
    """Ask two questions at once from a thread."""
    one, two = await asyncio.gather(context.ask(Name, "One?"), context.ask(Name, "Two?"))
    return f"{one.name} {two.name}"


@tool
async def pair(context: Context) -> str:
    """Ask two questions at once."""
    one, two = await asyncio.gather(context.ask(Name, "One?"), context.ask(Name, "Two?"))
    return f"{one.name} {two.name}"


TOOLS = (ask_name, hasty, asleep, dawdle, hasty_pair, hasty_thread, threaded, threaded_pair, pair)


async def assert_nothing_is_left(host: ServerHost, peer: Peer) -> None:
    """Check that a call leaves nothing on its connection and no paused deadline."""
    assert not peer.connection.pending_answers
    assert not peer.connection.calls
    assert not host.handler.inflight
    await until(lambda: not host.assembly.deadlines._pauses)
    assert not host.assembly.deadlines._timed


async def let_a_deadline_pass(peer: Peer) -> None:
    """Wait until another call with the same timeout has ended."""
    reply = await peer.ask("tools/call", {"name": "asleep"}, id="clock")
    assert reply["result"]["isError"]


@pytest.mark.parametrize("name", ["hasty", "hasty_thread"])
async def test_the_deadline_stands_still_while_a_user_is_asked(name: str) -> None:
    """The timeout is paused while a user is asked."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call(name)
        question = await peer.receive()
        for _ in range(3):
            await let_a_deadline_pass(peer)
        peer.answer(question, ACCEPTED)
        assert text_of(await peer.receive()) == "Ann"
        await assert_nothing_is_left(host, peer)
        assert await peer.close() == []


async def test_the_deadline_stands_still_until_all_questions_are_answered() -> None:
    """With several questions, the timeout is paused until the last answer."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call("hasty_pair")
        one, two = await peer.receive(), await peer.receive()
        await let_a_deadline_pass(peer)
        peer.answer(two, ACCEPTED)
        await let_a_deadline_pass(peer)
        peer.answer(one, ACCEPTED)
        assert text_of(await peer.receive()) == "Ann Ann"
        await assert_nothing_is_left(host, peer)


async def test_the_deadline_goes_on_after_the_answer() -> None:
    """After the answer, the remaining time continues."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call("dawdle")
        question = await peer.receive()
        await let_a_deadline_pass(peer)
        peer.answer(question, ACCEPTED)
        reply = await peer.receive()
        assert reply["result"]["isError"]
        assert text_of(reply) == f"Tool dawdle did not finish within {MOMENT} seconds"
        await assert_nothing_is_left(host, peer)


@pytest.mark.parametrize("name", ["threaded", "threaded_pair"])
async def test_a_thread_asks(name: str) -> None:
    """A tool in a thread with its own loop can ask."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call(name)
        for _ in name.split("_"):
            peer.answer(await peer.receive(), ACCEPTED)
        assert text_of(await peer.receive()) == " ".join("Ann" for _ in name.split("_"))
        await assert_nothing_is_left(host, peer)


@pytest.mark.parametrize("name", ["ask_name", "pair", "threaded", "threaded_pair"])
async def test_a_cancelled_call_takes_its_questions_back(name: str) -> None:
    """Canceling a call withdraws its questions."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call(name, id=7)
        asked = {(await peer.receive())["id"] for _ in range(2 if "pair" in name else 1)}
        peer.cancel(7)
        await until(lambda: not host.handler.inflight)
        taken_back = [await peer.receive() for _ in asked]
        assert {one["method"] for one in taken_back} == {"notifications/cancelled"}
        assert {one["params"]["requestId"] for one in taken_back} == asked
        await assert_nothing_is_left(host, peer)
        assert await peer.close() == []


async def test_a_call_that_ends_takes_its_other_questions_back() -> None:
    """If one of several questions is declined, the others are withdrawn."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call("pair", id=7)
        one, two = await peer.receive(), await peer.receive()
        peer.answer(one, {"action": "decline"})
        messages = [await peer.receive()]
        await until(lambda: not host.handler.inflight)
        await assert_nothing_is_left(host, peer)
        messages += await peer.close()
        taken_back = [said["params"]["requestId"] for said in messages if "method" in said]
        assert taken_back == [two["id"]]


async def test_the_end_of_a_connection_ends_its_questions() -> None:
    """Closing the connection stops a call that waits for an answer."""
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call("ask_name")
        await peer.receive()
        await peer.transport.close(0)
        await assert_nothing_is_left(host, peer)


async def test_answers_of_another_connection_do_not_count() -> None:
    """Questions of two connections with equal ids get their own answers."""
    async with conversing(container_with(TOOLS)) as host:
        mine, theirs = await Peer(host).shake_hands(), await Peer(host).shake_hands()
        mine.call("ask_name")
        question = await mine.receive()
        theirs.answer(question, {"action": "accept", "content": {"name": "Eve"}})
        assert (await theirs.ask("ping"))["result"] == {}
        theirs.call("ask_name")
        assert (await theirs.receive())["id"] == question["id"]
        mine.answer(question, ACCEPTED)
        assert text_of(await mine.receive()) == "Ann"
        theirs.answer(question, {"action": "accept", "content": {"name": "Eve"}})
        assert text_of(await theirs.receive()) == "Eve"
        for peer in (mine, theirs):
            await assert_nothing_is_left(host, peer)


async def test_only_the_first_answer_counts() -> None:
    """Only the first of two simultaneous answers counts."""
    troubles: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, trouble: troubles.append(trouble))
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        peer.call("ask_name")
        question = await peer.receive()
        peer.answer(question, ACCEPTED)
        peer.answer(question, {"action": "decline"})
        assert text_of(await peer.receive()) == "Ann"
        assert await peer.close() == []
    gc.collect()
    assert troubles == []


class Turns(BaseModel):
    before: int
    after: int


class Race(ITool[Turns, str]):
    """Yields to the loop before and after it asks, with a timeout that may elapse."""

    name = "race"
    timeout_seconds = 0.002
    max_concurrency = 10_000

    async def execute(self, arguments: Turns, context: Context) -> str:
        for _ in range(arguments.before):
            await asyncio.sleep(0)
        try:
            answer = (await context.ask(Name, "Who?")).name
        except Declined as declined:
            answer = declined.action
        for _ in range(arguments.after):
            await asyncio.sleep(0)
        return answer


class Race2(Race):
    """The same with two questions."""

    name = "race2"

    async def execute(self, arguments: Turns, context: Context) -> str:
        both = await asyncio.gather(super().execute(arguments, context), super().execute(arguments, context))
        return " ".join(both)


ROUNDS = 250
SEED = 20260728


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
async def test_a_race_is_decided_once(seed: int) -> None:
    """With simultaneous answers, cancellations and timeouts, a call has one outcome and leaves nothing behind."""
    chance = random.Random(seed)
    async with conversing(container_with((Race(), Race2()))) as host:
        peer = await Peer(host).shake_hands()
        cancelled: set[int] = set()
        messages: list[Any] = []
        for number in range(ROUNDS):
            turns = {"before": chance.randrange(6), "after": chance.randrange(30)}
            peer.call(chance.choice(["race", "race2"]), turns, id=number)
            await _some_turns(chance)
            await _react(peer, chance, messages)
            if chance.random() < 0.4:
                victim = chance.randrange(number + 1)
                cancelled.add(victim)
                peer.cancel(victim)
        while peer.connection.calls:
            await _react(peer, chance, messages, always=True)
            await asyncio.sleep(0)
        await _some_turns(chance)
        await assert_nothing_is_left(host, peer)
        messages += await peer.close()
    replies = Counter(one["id"] for one in messages if "result" in one)
    assert set(replies.values()) == {1}
    assert replies.keys() | cancelled == set(range(ROUNDS))
    _assert_questions_end(messages)


async def _some_turns(chance: random.Random) -> None:
    for _ in range(chance.randrange(5)):
        await asyncio.sleep(0)


async def _react(peer: Peer, chance: random.Random, messages: list[Any], *, always: bool = False) -> None:
    """Read messages, and answer questions now, later, twice or never."""
    while not peer.transport._outbox.empty():
        messages.append(await peer.receive())
    open_questions = [one for one in messages if one.get("method") == "elicitation/create"]
    for question in open_questions:
        for _ in range(1 if always else chance.choice([0, 0, 1, 2])):
            peer.answer(question, chance.choice([ACCEPTED, {"action": "decline"}, {"action": "cancel"}]))


def _assert_questions_end(messages: list[Any]) -> None:
    asked = [one["id"] for one in messages if one.get("method") == "elicitation/create"]
    taken_back = [one["params"]["requestId"] for one in messages if one.get("method") == "notifications/cancelled"]
    assert len(set(asked)) == len(asked)
    assert len(set(taken_back)) == len(taken_back)
    assert set(taken_back) <= set(asked)


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
async def test_a_race_with_threads_is_decided_once(seed: int) -> None:
    """The same for calls that ask from threads."""
    chance = random.Random(seed)
    async with conversing(container_with(TOOLS)) as host:
        peer = await Peer(host).shake_hands()
        cancelled: set[int] = set()
        messages: list[Any] = []
        for number in range(60):
            peer.call(chance.choice(["threaded", "threaded_pair", "hasty_thread"]), id=number)
            await _some_turns(chance)
            await _react(peer, chance, messages)
            if chance.random() < 0.4:
                victim = chance.randrange(number + 1)
                cancelled.add(victim)
                peer.cancel(victim)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while peer.connection.calls or peer.connection.pending_answers:
                await _react(peer, chance, messages, always=True)
                await asyncio.sleep(0)
        await assert_nothing_is_left(host, peer)
        messages += await peer.close()
    replies = Counter(one["id"] for one in messages if "result" in one)
    assert set(replies.values()) == {1}
    assert replies.keys() | cancelled == set(range(60))
    _assert_questions_end(messages)


async def test_a_question_nobody_answers_is_given_up() -> None:
    """A question that times out is withdrawn, and a late answer is dropped."""
    async with conversing(container_with(TOOLS), settings={"limits": {"ask_timeout_seconds": 0.01}}) as host:
        peer = await Peer(host).shake_hands()
        for name in ("ask_name", "threaded"):
            peer.call(name)
            question = await peer.receive()
            assert (await peer.receive())["params"] == {"requestId": question["id"]}
            assert text_of(await peer.receive()) == "There was no answer within 0.01 seconds"
            await assert_nothing_is_left(host, peer)
            peer.answer(question, ACCEPTED)
        assert await peer.close() == []


class Remaining(ITool[NoArguments, list[bool]]):
    name = "remaining"

    async def execute(self, arguments: NoArguments, context: Context) -> list[bool]:
        before = context.remaining_seconds
        asking = asyncio.ensure_future(context.ask(Name, "Who?"))
        await asyncio.sleep(0)
        meanwhile = context.remaining_seconds
        await asking
        after = context.remaining_seconds
        assert before is not None
        assert after is not None
        return [meanwhile is None, 0 < after <= before]


async def test_a_tool_sees_how_much_time_it_has() -> None:
    """While a question is open there is no deadline; afterwards the remaining time is not longer than before."""
    async with conversing(container_with((Remaining(),))) as host:
        peer = await Peer(host).shake_hands()
        peer.call("remaining")
        peer.answer(await peer.receive(), ACCEPTED)
        assert (await peer.receive())["result"]["structuredContent"] == {"result": [True, True]}
