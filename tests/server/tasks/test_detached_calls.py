"""Calls that begin in their request and become tasks: the questions first, the work afterwards."""

from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, tool, tools_of
from tests.support.peers.memory_peer import ACCEPTED, Peer, container_with, conversing, text_of
from tests.support.peers.task_peers import DirectedPeer
from tests.support.tools import Name


class Receipt(BaseModel):
    number: int


class Kitchen:
    """A tool that charges and asks in its request, and cooks in a task."""

    def __init__(self) -> None:
        self.charges: list[str] = []
        self.entered = 0

    def charge(self, once: str) -> Receipt:
        self.charges.append(once)
        return Receipt(number=len(self.charges))

    @tool(task_support="detached")
    async def cook(self, context: Context) -> str:
        """Charge, ask, then cook in the background."""
        self.entered += 1
        receipt = await context.step("charge", self.charge, model=Receipt)
        name = await context.ask(Name, "Who eats?")
        await context.detach()
        return f"receipt {receipt.number} for {name.name}"


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


async def first_round(peer: Peer) -> dict[str, Any]:
    """Call the tool up to its question, and return the request that brings the answer."""
    asked = await peer.result("tools/call", {"name": "cook", "arguments": {}})
    assert (asked["resultType"], "taskId" in asked) == ("input_required", False)
    answers = dict.fromkeys(asked["inputRequests"], ACCEPTED)
    return {"name": "cook", "arguments": {}, "inputResponses": answers, "requestState": asked["requestState"]}


async def test_a_call_becomes_a_task_after_its_question(kitchen: Kitchen) -> None:
    """The task knows the answers and steps of the rounds: nothing is asked or charged again."""
    async with conversing(container_with(tools_of(kitchen))) as host:
        peer = await DirectedPeer.connect(host)
        begun = await peer.result("tools/call", await first_round(peer))
        assert begun["resultType"] == "task"
        assert not {"requestState", "inputRequests", "result"} & begun.keys()
        outcome = await peer.outcome(begun["taskId"])
    assert text_of(outcome).startswith("receipt 1 for ")
    assert len(kitchen.charges) == 1
    assert kitchen.entered == 3


async def test_clients_without_tasks(kitchen: Kitchen) -> None:
    """For a client that does not know tasks, the call ends in its request."""
    async with conversing(container_with(tools_of(kitchen))) as host:
        peer = Peer(host)
        result = await peer.result("tools/call", await first_round(peer))
    assert text_of({"result": result}).startswith("receipt 1 for ")
    assert (len(kitchen.charges), kitchen.entered) == (1, 2)


async def test_clients_with_a_handshake(kitchen: Kitchen) -> None:
    """With a handshake, the code simply continues, and the tool cannot be called as a task."""
    async with conversing(container_with(tools_of(kitchen))) as host:
        peer = await Peer(host).shake_hands()
        number = peer.call("cook")
        peer.answer(await peer.hear("elicitation/create"), ACCEPTED)
        assert text_of(await peer.reply(number)).startswith("receipt 1 for ")
        (listed,) = (await peer.result("tools/list"))["tools"]
        assert "execution" not in listed
    assert kitchen.entered == 1


async def test_the_key_of_a_step_is_the_same_in_the_task() -> None:
    """A step that the rounds have begun, and the task finishes, has one idempotency key."""
    seen: list[str] = []

    def note(once: str) -> None:
        seen.append(once)
        if len(seen) == 1:
            raise ConnectionError("the first attempt fails")

    @tool(task_support="detached")
    async def send(context: Context) -> str:
        """Try to send at once, and again in the background."""
        await context.step("before", lambda once: 1)
        try:
            await context.step("send", note)
        except ConnectionError:
            await context.detach()
        return "sent"

    async with conversing(container_with((send,))) as host:
        peer = await DirectedPeer.connect(host)
        begun = await peer.result("tools/call", {"name": "send", "arguments": {}})
        assert begun["resultType"] == "task"
        assert text_of(await peer.outcome(begun["taskId"])) == "sent"
    assert len(seen) == 2
    assert seen[0] == seen[1]
