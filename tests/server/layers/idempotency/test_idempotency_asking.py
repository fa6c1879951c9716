"""Questions and approvals of calls that share a run."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context
from axolotl_core.policies.tool_rules import Approval, Idempotency
from axolotl_server import InProcessClient, ServerHost
from axolotl_server.client.replies import DECLINE, Question
from tests.support.counting_tools import Order, Pay
from tests.support.peers.layer_calls import ASKABLE
from tests.support.peers.memory_peer import Peer
from tests.support.tools import container_of


class Word(BaseModel):
    word: str


class Asking(Pay):
    """Asks before it does its work."""

    async def execute(self, arguments: Order, context: Context) -> str:
        self.runs["asked"] += 1
        word = (await context.ask(Word, "Which word?")).word
        self.done[arguments.key] += 1
        return f"paid with {word}"


async def with_server(pay: Pay, use: Callable[[ServerHost], Any]) -> None:
    async with ServerHost(container_of(pay)) as host:
        await use(host)


async def test_questions_in_rounds_are_not_shared() -> None:
    """In the stateless era each caller is asked; the first answer runs the tool, and the others get its result."""
    pay = Asking()

    async def use(host: ServerHost) -> None:
        def answer(question: Question) -> Mapping[str, Any]:
            return {"word": "tea"}

        clients = [InProcessClient(host.handler, answer=answer) for _ in range(5)]
        outcomes = await asyncio.gather(*(client.call("pay", {"key": "k"}) for client in clients))
        assert [outcome.text for outcome in outcomes] == ["paid with tea"] * 5
        assert pay.done["k"] == 1
        for client in clients:
            await client.close()

    await with_server(pay, use)


async def test_a_question_with_a_handshake() -> None:
    """In the handshake era the first caller is asked while all wait, and no timeout elapses."""
    pay = Asking()
    pay.timeout_seconds = 5.0

    async def use(host: ServerHost) -> None:
        client = Peer(host, capabilities={"elicitation": {}})
        await client.shake_hands()
        client.call("pay", {"key": "k"}, id=1)
        question = await client.receive()
        client.call("pay", {"key": "k"}, id=2)
        (asked,) = [call for call in host.handler.inflight if call.request_id == 1]
        assert asked.deadline is None
        client.answer(question, {"action": "accept", "content": {"word": "tea"}})
        replies = [await client.receive(), await client.receive()]
        assert {reply["id"] for reply in replies} == {1, 2}
        assert [reply["result"]["content"][0]["text"] for reply in replies] == ["paid with tea"] * 2
        assert (pay.runs["asked"], pay.done["k"]) == (1, 1)
        await client.close()

    await with_server(pay, use)


async def test_the_caller_who_was_asked_leaves() -> None:
    """If the caller who was asked leaves, the others start again and are asked."""
    pay = Asking()

    async def use(host: ServerHost) -> None:
        clients = [Peer(host, capabilities={"elicitation": {}}) for _ in range(2)]
        for client in clients:
            await client.shake_hands()
            client.call("pay", {"key": "k"})
        assert (await clients[0].receive())["method"] == "elicitation/create"
        clients[0].notify("notifications/cancelled", {"requestId": 1})
        assert (await clients[0].receive())["method"] == "notifications/cancelled"
        question = await clients[1].receive()
        clients[1].answer(question, {"action": "accept", "content": {"word": "milk"}})
        assert (await clients[1].receive())["result"]["content"][0]["text"] == "paid with milk"
        assert (pay.runs["asked"], pay.done["k"]) == (2, 1)
        for client in clients:
            await client.close()

    await with_server(pay, use)


class Approved(Pay):
    """Requires approval."""

    requires_approval = Approval()
    idempotency = Idempotency()

    async def execute(self, arguments: Order, context: Context) -> str:
        self.runs[arguments.key] += 1
        return "paid"


@pytest.mark.parametrize("by", ["the tool", "the approval"])
async def test_a_client_that_cannot_be_asked_does_not_affect_others(by: str) -> None:
    """A client that cannot be asked gets an error, and a waiting client that can be asked gets the result."""

    async def use(host: ServerHost) -> None:
        mute, able = Peer(host, capabilities={}), Peer(host, capabilities={"elicitation": {}})
        for client in (mute, able):
            await client.shake_hands()
        for client in (mute, able):
            client.call("pay", {"key": "k"})
        assert (await mute.receive())["result"]["isError"] is True
        question = await able.receive()
        able.answer(question, {"action": "accept", "content": {"word": "milk", "approve": True}})
        assert "isError" not in (await able.receive())["result"]
        await mute.close()
        await able.close()

    await with_server(Asking() if by == "the tool" else Approved(), use)


async def test_a_stored_result_needs_no_approval() -> None:
    """A repetition of an approved call gets the stored result without another question."""
    pay = Approved()

    async def use(host: ServerHost) -> None:
        client = InProcessClient(host.handler, capabilities=ASKABLE)
        params: dict[str, Any] = {"name": "pay", "arguments": {"key": "k"}}
        asked = await client.request("tools/call", params)
        (key,) = asked["inputRequests"]
        yes = {"action": "accept", "content": {"approve": True}}
        approved = {**params, "requestState": asked["requestState"], "inputResponses": {key: yes}}
        first = await client.request("tools/call", approved)
        again = await client.request("tools/call", approved)
        assert first["content"] == again["content"] == [{"type": "text", "text": "paid"}]
        assert again["_meta"]["axolotl/replayed"] is True
        assert pay.runs["k"] == 1
        await client.close()

    await with_server(pay, use)


async def test_a_no_applies_to_all() -> None:
    """Of several equal concurrent calls, one user is asked, and a no applies to all."""
    pay, asked = Approved(), []

    async def use(host: ServerHost) -> None:
        clients = [Peer(host, capabilities={"elicitation": {}}) for _ in range(3)]
        for client in clients:
            await client.shake_hands()
            client.call("pay", {"key": "k"})
        question = await clients[0].receive()
        asked.append(question["params"]["message"])
        clients[0].answer(question, DECLINE)
        replies = [await client.receive() for client in clients]
        assert [reply["result"]["_meta"]["axolotl/reason"] for reply in replies] == ["not_approved"] * 3
        assert pay.runs["k"] == 0
        for client in clients:
            await client.close()

    await with_server(pay, use)
    assert len(asked) == 1
