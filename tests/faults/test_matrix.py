"""Every fault over every transport and in both eras: an answer in time, and nothing left behind."""

import asyncio
import time
from typing import Any

import pytest

from tests.faults.tools import DEADLINE, HELD_SECONDS, Container, Patient
from tests.faults.wires import WAYS, Wire, wire_to
from tests.support.servers.serving import PATIENCE_SECONDS, StdioServers

MARGIN = 5.0
"""The rule is 50 ms; a busy machine is slow, not wrong, and the tools would take a minute, or for ever."""

STOPPED = (
    *("hang", "swallow", "turn_into_another_error", "answer_anyway", "block", "fail_late"),
    *("hang_in_thread", "flood", "spin", "match"),
)
HIDDEN = (
    *("recurse", "recurse_in_thread", "recurse_in_process", "raise_exit", "raise_exit_in_thread", "raise_interrupt"),
    *("raise_cancelled", "raise_generator_exit", "raise_group", "give_what_cannot_be_written"),
)
TOLD = {"crash": "crashed", "devour": "memory", "give_too_much": "result_too_large", "complain": None}
LEFT_BEHIND = 3
"""Of those that are stopped, the ones that go on: a coroutine and two threads."""


async def timed(wire: Wire, name: str) -> tuple[Any, float]:
    """Call a tool, and say how long that took."""
    began = time.monotonic()
    return await wire.call(name), time.monotonic() - began


async def counted(wire: Wire, **expected: int) -> dict[str, int]:
    """Wait until the server has so much left, and give everything it counts."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found: dict[str, int] = (await wire.call("census"))["structuredContent"]
            if found.items() >= expected.items():
                return found


@pytest.mark.parametrize("way", WAYS)
async def test_every_fault_is_survived(way: str, stdio_servers: StdioServers) -> None:
    """All at once, each has the answer that it should have, good calls are not disturbed, and then all is as before."""
    async with wire_to(way, Container, stdio_servers) as wire:
        await wire.call("hold_again")
        await wire.call("echo_in_thread", {"text": "first"})
        before = await counted(wire)
        names = [*STOPPED, *HIDDEN, *TOLD]
        outcomes = dict(zip(names, await asyncio.gather(*(timed(wire, name) for name in names)), strict=True))
        for name in ("echo", "echo_in_thread"):
            assert (await wire.call(name, {"text": "still here"}))["content"][0]["text"] == "still here"
        _check(outcomes)
        await counted(wire, inflight=0, zombies=LEFT_BEHIND, finalising=0)
        await wire.call("release")
        after = await counted(wire, inflight=0, zombies=0, finalising=0, tasks=before["tasks"])
        assert after["threads"] <= before["threads"] + len(STOPPED) + 10  # pools keep their threads, and are bounded
    assert set(wire.answers.values()) == {1}


def _check(outcomes: dict[str, tuple[Any, float]]) -> None:
    for name in STOPPED:
        result, seconds = outcomes[name]
        assert result["isError"], name
        assert result["_meta"]["reason"] == "timeout", name
        assert DEADLINE <= seconds < DEADLINE + MARGIN, name
    for name in HIDDEN:
        assert "Reference" in outcomes[name][0]["content"][0]["text"], name
    for name, reason in TOLD.items():
        assert outcomes[name][0]["isError"], name
        assert outcomes[name][0].get("_meta", {}).get("reason") == reason, name


@pytest.mark.parametrize("way", WAYS)
async def test_a_loop_that_was_held_goes_on(way: str, stdio_servers: StdioServers) -> None:
    """A coroutine that keeps everything waiting is answered like all the others, who are only late."""
    async with wire_to(way, Container, stdio_servers) as wire:
        held = timed(wire, "hold_the_loop")
        others = [wire.call("echo", {"text": "x"}) for _ in range(10)]
        (result, seconds), *rest = await asyncio.gather(held, *others)
        assert result["content"][0]["text"] == "held"
        assert seconds >= HELD_SECONDS
        assert all(not one.get("isError") for one in rest)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["hang", "swallow", "block", "spin"])
async def test_a_call_is_taken_back(way: str, name: str, stdio_servers: StdioServers) -> None:
    """A caller that gives up hears nothing but that, and what it wanted is stopped, or counted until it ends."""
    told = way == "http, handshake"  # a request of a session must have a response
    async with wire_to(way, Patient, stdio_servers) as wire:
        await wire.call("hold_again")
        number, reply = wire.begin(name)
        await counted(wire, inflight=1)
        await wire.cancel(number)
        said = await asyncio.wait_for(reply, PATIENCE_SECONDS)
        assert (said["error"]["code"] if told else said) == (-32800 if told else None)
        await counted(wire, inflight=0, zombies=int(name in ("swallow", "block")))
        await wire.call("release")
        await counted(wire, zombies=0)
    assert wire.answers[number] == int(told)
