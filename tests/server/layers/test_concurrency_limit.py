"""Concurrency limits: running calls, waiting calls and their order."""

import asyncio
import random
import threading
from collections.abc import Awaitable
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import Context, ITool, NoArguments, tool
from axolotl_core.errors import Overloaded
from axolotl_core.layers import Call
from axolotl_server import InProcessClient, ServerHost, connect
from axolotl_server.layers.concurrency import Bulkhead
from tests.support.object_counts import bulkhead_of
from tests.support.peers.memory_peer import Peer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Probe, container_of

LONG = 60.0


class FindTarget(ITool[NoArguments, int]):
    """Admits calls one after the other and releases each on request."""

    name = "door"
    max_concurrency = 1
    queue_limit = 100
    queue_timeout_seconds = LONG

    def __init__(self) -> None:
        self.inside: list[Any] = []
        self.most = 0
        self.opened = asyncio.Semaphore(0)
        self.contexts: list[Call] = []

    async def execute(self, arguments: NoArguments, context: Context) -> int:
        assert isinstance(context, Call)
        self.contexts.append(context)
        self.inside.append(context.request_id)
        self.most = max(self.most, len(self.inside))
        try:
            await self.opened.acquire()
        finally:
            self.inside.remove(context.request_id)
        return len(self.contexts)


async def test_calls_run_in_the_order_of_arrival() -> None:
    """Calls run in the order of arrival."""
    door = FindTarget()
    async with ServerHost(container_of(door)) as host:
        peer = Peer(host)
        for number in range(10):
            peer.call("door", id=number)
        await until(lambda: bulkhead_of(host, "door").waiting == 9)
        for number in range(10, 20):
            door.opened.release()
            await until(lambda number=number: len(door.contexts) == number - 8)  # type: ignore[misc]
            peer.call("door", id=number)
        for _ in range(10):
            door.opened.release()
        await peer.close()
    assert [one.request_id for one in door.contexts] == list(range(20))
    assert door.most == 1
    assert door.contexts[0].queued_seconds == 0 < door.contexts[1].queued_seconds


async def test_a_full_queue_rejects_at_once() -> None:
    """If the queue is full, a call is rejected with a retry hint, and waiting calls are not affected."""
    door = FindTarget()
    door.queue_limit = 1
    async with ServerHost(container_of(door)) as host:
        client = InProcessClient(host.handler)
        running = [asyncio.ensure_future(client.call("door")) for _ in range(2)]
        await until(lambda: bulkhead_of(host, "door").waiting == 1)
        refused = await client.call("door")
        for _ in running:
            door.opened.release()
        assert not any(outcome.is_error for outcome in await asyncio.gather(*running))
        await client.close()
    assert refused.is_error
    assert refused.text == "door is busy: it runs at most 1 at once; try again"
    assert refused.meta["axolotl/retryAfterMs"] == LONG * 1000


async def test_waiting_ends() -> None:
    """A call that waited too long is rejected with a retry hint."""
    door = FindTarget()
    door.queue_timeout_seconds = 0.02
    async with ServerHost(container_of(door)) as host:
        client = InProcessClient(host.handler)
        running = asyncio.ensure_future(client.call("door"))
        await until(lambda: door.inside)
        assert (await client.call("door")).is_error
        assert bulkhead_of(host, "door").waiting == 0
        door.opened.release()
        assert not (await running).is_error
        await client.close()
        assert bulkhead_of(host, "door").running == 0


async def test_a_deadline_counts_while_a_call_waits() -> None:
    """The timeout of a call includes the time in the queue."""
    door = FindTarget()
    door.timeout_seconds = 0.05
    async with ServerHost(container_of(door)) as host:
        client = InProcessClient(host.handler)
        outcomes = await asyncio.gather(client.call("door"), client.call("door"))
        assert [outcome.meta["axolotl/reason"] for outcome in outcomes] == ["timeout", "timeout"]
        await client.close()
        assert (bulkhead_of(host, "door").running, bulkhead_of(host, "door").waiting) == (0, 0)


async def test_a_canceled_call_does_not_lose_a_slot() -> None:
    """A call that is canceled in the queue does not affect others."""
    door = FindTarget()
    async with ServerHost(container_of(door)) as host:
        peer = Peer(host)
        for number in range(4):
            peer.call("door", id=number)
        await until(lambda: bulkhead_of(host, "door").waiting == 3)
        for number in (1, 2):
            peer.cancel(number)
        await until(lambda: bulkhead_of(host, "door").waiting == 1)
        for _ in range(2):
            door.opened.release()
        await peer.close()
        assert bulkhead_of(host, "door").running == 0
    assert [one.request_id for one in door.contexts] == [0, 3]


async def test_the_slot_of_a_canceled_call_goes_to_the_next() -> None:
    """If a call is canceled when it gets a slot, the next one gets it."""
    bulkhead = Bulkhead("it", 1, 10, LONG)
    bulkhead.running = 1
    first, second = asyncio.ensure_future(bulkhead.wait()), asyncio.ensure_future(bulkhead.wait())
    await until(lambda: bulkhead.waiting == 2)
    bulkhead.release()
    first.cancel()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    bulkhead.release()
    assert (bulkhead.running, bulkhead.waiting) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
async def test_a_place_and_the_end_of_patience_at_once(seed: int) -> None:
    """A slot that is released at the same time as a wait times out is neither lost nor assigned twice."""
    chance = random.Random(seed)
    patience = 0.002
    bulkhead = Bulkhead("it", 2, 1000, patience)
    most, served, refused = 0, 0, 0

    async def visit() -> None:
        nonlocal most, served, refused
        try:
            if bulkhead.free:
                bulkhead.running += 1
            else:
                await bulkhead.wait()
        except Overloaded:
            refused += 1
            return
        most = max(most, bulkhead.running)
        try:
            await asyncio.sleep(chance.choice([0, patience * chance.uniform(0.5, 1.5)]))
            served += 1
        finally:
            bulkhead.release()

    visits = []
    for _ in range(300):
        visits.append(asyncio.ensure_future(visit()))
        if chance.random() < 0.2:
            chance.choice(visits).cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*visits, return_exceptions=True)
    assert (bulkhead.running, bulkhead.waiting, most) == (0, 0, 2)
    assert served
    assert refused


async def test_an_abandoned_thread_keeps_its_slot() -> None:
    """A slot is released when the code ends, not when its caller is answered."""
    go_on = threading.Event()

    @tool(max_concurrency=1, timeout_seconds=0.05)
    def dig() -> None:
        go_on.wait(PATIENCE_SECONDS)

    async with ServerHost(container_of(dig)) as host:
        client = InProcessClient(host.handler)
        zombies = host.handler.inflight.zombies
        assert (await client.call("dig")).meta["axolotl/reason"] == "timeout"
        assert (len(zombies), zombies.by_name(), bulkhead_of(host, "dig").running) == (1, {"dig": 1}, 1)
        assert "busy" in (await client.call("dig")).text
        go_on.set()
        await until(lambda: bulkhead_of(host, "dig").running == 0)
        assert len(zombies) == 0
        assert not (await client.call("dig")).is_error
        await client.close()


async def test_a_busy_tool_does_not_block_other_tools() -> None:
    """The slot of the server is taken last, so a busy tool does not block other tools."""
    door, probe = FindTarget(), Probe()
    settings = {"limits": {"max_concurrency": 2}}
    async with connect(container_of(door, probe), settings=settings) as client:
        slow = [asyncio.ensure_future(client.call("door")) for _ in range(20)]
        await until(lambda: door.inside)
        other = asyncio.ensure_future(client.call("probe"))
        await asyncio.wait_for(probe.started.wait(), PATIENCE_SECONDS)
        assert "The server is busy" in (await client.call("probe")).text
        probe.release.set()
        assert (await other).text == "done"
        for _ in slow:
            door.opened.release()
        assert not any(outcome.is_error for outcome in await asyncio.gather(*slow))


async def test_tools_of_a_set_share_its_places() -> None:
    """The limit of a tool set applies to all of its tools together."""

    class Slow(containers.DeclarativeContainer):
        tools = providers.List(providers.Singleton(Probe), providers.Object(free_of_limits))

    class Everything(containers.DeclarativeContainer):
        slow = providers.Container(Slow)
        tools = providers.List(providers.Object(outside))

    async with connect(Everything(), settings={"toolsets": {"slow": {"max_concurrency": 1}}}) as client:
        first = asyncio.ensure_future(client.call("probe"))
        await asyncio.sleep(0)
        assert "The tool set slow is busy" in (await client.call("free_of_limits")).text
        assert (await client.call("outside")).text == "out"
        first.cancel()


@tool
async def free_of_limits() -> str:
    return "free"


@tool
async def outside() -> str:
    return "out"


async def test_calls_come_before_runs_of_tasks() -> None:
    """A slot goes to a call that waits only for a while, then to the runs of tasks in their order."""
    bulkhead = Bulkhead("it", 1, 1, LONG)
    bulkhead.running = 1
    turns: list[str] = []

    async def wait(name: str, turn: Awaitable[None]) -> None:
        await turn
        turns.append(name)
        bulkhead.release()

    names = {"one": bulkhead.wait_patiently, "two": bulkhead.wait_patiently, "call": bulkhead.wait}
    waiting = [asyncio.ensure_future(wait(name, begin())) for name, begin in names.items()]
    await until(lambda: bulkhead.waiting == len(names))
    with pytest.raises(Overloaded):
        await bulkhead.wait()
    bulkhead.release()
    await asyncio.gather(*waiting)
    assert turns == ["call", "one", "two"]
    assert bulkhead.running == 0
