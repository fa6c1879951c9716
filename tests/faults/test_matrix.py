"""Every fault over every transport in both eras: a reply in time, and no leaks."""

import asyncio
import time
from typing import Any

import pytest

from tests.faults.tools import DEADLINE, HELD_SECONDS, Container, Patient
from tests.faults.wires import WAYS, Wire, wire_to
from tests.support.servers.serving import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

MARGIN = 5.0
"""The promise is 50 ms. A busy machine needs more, but the tools would take a minute or never end."""

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
"""Tools whose code keeps running after it is stopped: one coroutine and two threads."""


async def timed(wire: Wire, name: str) -> tuple[Any, float]:
    """Call a tool and return the result with the elapsed time."""
    began = time.monotonic()
    return await wire.call(name), time.monotonic() - began


async def counted(wire: Wire, **expected: int) -> dict[str, int]:
    """Wait until the server has a number of abandoned calls, and return all of its counts."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found: dict[str, int] = (await wire.call("census"))["structuredContent"]
            if found.items() >= expected.items():
                return found


@pytest.mark.parametrize("way", WAYS)
async def test_every_fault_is_survived(way: str) -> None:
    """With all faults at once, each call gets its expected reply, good calls succeed, and nothing is left over."""
    async with wire_to(way, Container) as wire:
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
        assert after["threads"] <= before["threads"] + len(STOPPED) + 10  # pools keep their threads, which are bounded
    assert set(wire.answers.values()) == {1}


def _check(outcomes: dict[str, tuple[Any, float]]) -> None:
    for name in STOPPED:
        result, seconds = outcomes[name]
        assert result["isError"], name
        assert result["_meta"]["axolotl/reason"] == "timeout", name
        assert DEADLINE <= seconds < DEADLINE + MARGIN, name
    for name in HIDDEN:
        assert "Reference" in outcomes[name][0]["content"][0]["text"], name
    for name, reason in TOLD.items():
        assert outcomes[name][0]["isError"], name
        assert outcomes[name][0].get("_meta", {}).get("axolotl/reason") == reason, name


@pytest.mark.parametrize("way", WAYS)
async def test_a_loop_that_was_held_goes_on(way: str) -> None:
    """A coroutine that blocks the event loop gets the usual reply, and all other calls are only delayed."""
    async with wire_to(way, Container) as wire:
        held = timed(wire, "hold_the_loop")
        others = [wire.call("echo", {"text": "x"}) for _ in range(10)]
        (result, seconds), *rest = await asyncio.gather(held, *others)
        assert result["content"][0]["text"] == "held"
        assert seconds >= HELD_SECONDS
        assert all(not one.get("isError") for one in rest)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["hang", "swallow", "block", "spin"])
async def test_a_call_is_taken_back(way: str, name: str) -> None:
    """A canceled call gets no reply, and its code is stopped, or counted until it ends."""
    async with wire_to(way, Patient) as wire:
        await wire.call("hold_again")
        number, reply = wire.begin(name)
        await counted(wire, inflight=1)
        await wire.cancel(number)
        assert await asyncio.wait_for(reply, PATIENCE_SECONDS) is None
        await counted(wire, inflight=0, zombies=int(name in ("swallow", "block")))
        await wire.call("release")
        await counted(wire, zombies=0)
    assert wire.answers[number] == 0
