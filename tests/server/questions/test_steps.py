"""Steps of calls that run more than once: work that is done once, although the code runs again from the start."""

import math
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, ToolAnnotations, ToolError, tools_of
from axolotl_core import tool as make_tool
from axolotl_core.calls.steps import MAX_STEP_BYTES, read_step
from axolotl_core.policies.tool_rules import Retry
from axolotl_server import connect
from tests.support.core.callers import Caller
from tests.support.peers.memory_peer import ACCEPTED, Peer, container_with, conversing, text_of
from tests.support.tools import Name

KEYS = {"protocol": {"state_keys": ["a secret of at least sixteen characters"]}}


class Receipt(BaseModel):
    number: int


class Bank:
    """Counts what it was asked to do."""

    def __init__(self) -> None:
        self.charges: list[str] = []

    async def charge(self, once: str) -> Receipt:
        self.charges.append(once)
        return Receipt(number=len(self.charges))


class Shop:
    """Tools that charge before they ask."""

    def __init__(self) -> None:
        self.bank = Bank()
        self.failures = 1

    @make_tool
    async def buy(self, context: Context) -> str:
        """Charge, then ask."""
        receipt = await context.step("charge", self.bank.charge, model=Receipt)
        name = await context.ask(Name, "Whose name goes on the parcel?")
        return f"receipt {receipt.number} for {name.name}"

    @make_tool
    async def big(self, context: Context) -> str:
        """Store too much."""
        await context.step("text", lambda once: "x" * MAX_STEP_BYTES)
        return "stored"

    @make_tool
    async def average(self, context: Context) -> str:
        """Store a number that JSON does not have."""
        await context.step("typed", lambda once: math.nan, model=float)
        return "stored"

    @make_tool
    async def averages(self, context: Context) -> str:
        """Store it in a list."""
        await context.step("untyped", lambda once: [math.nan])
        return "stored"

    @make_tool(retry=Retry(attempts=2, base_seconds=0.001), annotations=ToolAnnotations(idempotent=True))
    async def shaky(self, context: Context) -> int:
        """Fail after the charge, once."""
        receipt = await context.step("charge", self.bank.charge, model=Receipt)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the carrier does not answer")
        return receipt.number


async def rounds(peer: Peer, name: str) -> Any:
    """Call a tool up to its question, and repeat the request with the answer."""
    first = await peer.result("tools/call", {"name": name, "arguments": {}})
    assert first["resultType"] == "input_required"
    answers = dict.fromkeys(first["inputRequests"], ACCEPTED)
    again = {"name": name, "arguments": {}, "inputResponses": answers, "requestState": first["requestState"]}
    return await peer.result("tools/call", again)


async def test_a_step_is_done_once_in_rounds() -> None:
    """In stateless rounds, the result of a step travels in the sealed state, also to another server."""
    shop, other = Shop(), Shop()
    async with (
        conversing(container_with(tools_of(shop)), settings=KEYS) as one,
        conversing(container_with(tools_of(other)), settings=KEYS) as two,
    ):
        first = await Peer(one).result("tools/call", {"name": "buy", "arguments": {}})
        answers = dict.fromkeys(first["inputRequests"], ACCEPTED)
        again = {"name": "buy", "arguments": {}, "inputResponses": answers, "requestState": first["requestState"]}
        result = await Peer(two).result("tools/call", again)
    assert text_of({"result": result}).startswith("receipt 1 for ")
    assert (len(shop.bank.charges), len(other.bank.charges)) == (1, 0)


async def test_the_key_of_a_step_is_the_same_in_every_round() -> None:
    """A step that did not finish gets the same key in the next round; another call gets another one."""
    seen: list[str] = []

    def fail_first(once: str) -> None:
        seen.append(once)
        if len(seen) % 2:
            raise ConnectionError("the first attempt fails")

    @make_tool
    async def unlucky(context: Context) -> str:
        """Keep one step, and try another one that fails until the user has answered."""
        await context.step("first", lambda once: None)
        name = "done"
        try:
            await context.step("second", fail_first)
        except ConnectionError:
            name = (await context.ask(Name, "Again?")).name
        return name

    async with conversing(container_with((unlucky,)), settings=KEYS) as host:
        await rounds(Peer(host), "unlucky")
        await rounds(Peer(host), "unlucky")
    assert len(seen) == 4
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert seen[0] != seen[2]


async def test_a_step_with_a_handshake_stays_in_memory() -> None:
    """With a handshake, the code waits at its question, and the step has run once."""
    shop = Shop()
    async with conversing(container_with(tools_of(shop))) as host:
        peer = await Peer(host).shake_hands()
        number = peer.call("buy")
        peer.answer(await peer.hear("elicitation/create"), ACCEPTED)
        assert text_of(await peer.reply(number)).startswith("receipt 1 for ")
    assert len(shop.bank.charges) == 1


async def test_the_key_of_a_step_may_be_empty() -> None:
    """Every text is a key, also where the results stay in memory."""

    @make_tool
    async def pack(context: Context) -> str:
        """Do two steps."""
        return await context.step("", lambda once: "box", model=str) + await context.step(
            "2", lambda once: "ed", model=str
        )

    async with conversing(container_with((pack,))) as host:
        peer = await Peer(host).shake_hands()
        assert text_of(await peer.reply(peer.call("pack"))) == "boxed"


async def test_a_step_is_not_repeated_by_a_retry() -> None:
    """The retry of a call runs the code again, but not its finished steps."""
    shop = Shop()
    async with connect(container_with(tools_of(shop))) as client:
        assert (await client.call("shaky", {})).text == "1"
    assert len(shop.bank.charges) == 1


async def test_a_result_that_is_too_large() -> None:
    """The result of a step has a limit."""
    async with connect(container_with(tools_of(Shop()))) as client:
        outcome = await client.call("big", {})
    assert outcome.is_error
    assert "The result of the step 'text' has 32770 bytes; at most 32768 are stored" in outcome.text


@pytest.mark.parametrize(("name", "text"), [("average", "it is nan"), ("averages", "0 is nan")])
async def test_a_result_that_is_no_json(caplog: pytest.LogCaptureFixture, name: str, text: str) -> None:
    """NaN fails, because a later run would read something else."""
    async with connect(container_with(tools_of(Shop()))) as client:
        assert (await client.call(name, {})).is_error
    assert f"{text}, and JSON has no such number" in caplog.text


async def test_many_results_that_are_too_large_together() -> None:
    """All results of a call have to fit into the sealed state."""

    @make_tool
    async def hoard(context: Context) -> str:
        """Store more than a state can hold."""
        for number in range(3):
            await context.step(f"text-{number}", lambda once: "x" * 30_000)
        return (await context.ask(Name, "Who?")).name

    async with conversing(container_with((hoard,)), settings=KEYS) as host:
        result = await Peer(host).result("tools/call", {"name": "hoard", "arguments": {}})
    assert result["isError"]
    assert "The answers and steps so far are too large for the next round" in text_of({"result": result})


async def test_a_stored_result_that_does_not_fit() -> None:
    """A result that an older version of the code stored is refused if it does not fit the model."""
    caller = Caller()
    caller.kept["charge"] = b'{"total": 1}'
    with pytest.raises(ToolError, match="The stored result of the step 'charge' does not fit"):
        await Context(caller=caller).step("charge", Bank().charge, model=Receipt)


async def test_without_a_server() -> None:
    """In a unit test, a step simply runs; it may be a plain function, and its result is any JSON value."""
    context = Context()
    assert await context.step("double", lambda once: [len(once), None]) == [32, None]
    assert read_step("double", b"[1]", list[int]) == [1]


async def test_failures_are_not_stored() -> None:
    """A step that raises runs again."""
    caller = Caller()
    context = Context(caller=caller)
    with pytest.raises(ZeroDivisionError):
        await context.step("divide", lambda once: 1 / 0)
    assert await context.step("divide", lambda once: 1.0) == 1.0
