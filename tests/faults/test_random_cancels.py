"""A thousand calls of all kinds with random cancellation: one reply each, in time, and no leaks."""

import asyncio
import json
import random
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core import Context, tool
from axolotl_server import ServerHost
from tests.faults.wires import HttpWire, StreamWire, Wire
from tests.support.call_resources import Ledger
from tests.support.containers import process_tools
from tests.support.forked_processes import wait_until_gone
from tests.support.object_counts import nothing_left, server_threads, wait_for_threads
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.servers.serving import PATIENCE_SECONDS, serving
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

SEED = 20260728
DEADLINE = 0.05
MARGIN = 5.0
"""The promise is 50 ms; here a thousand calls share a busy machine."""
SETTINGS = {
    "limits": {"threads": 8, "processes": 2, "timeout_seconds": DEADLINE, "queue_timeout_seconds": 0.02},
}


def tools_of_all_kinds(chance: random.Random, ledger: Ledger) -> list[Any]:
    """Create tools that take random times, some of them too long."""

    @tool
    async def quick(context: Context) -> None:
        await context.enter(ledger.waiting("quick"))
        for turn in range(chance.randrange(20)):
            context.report_progress(turn)
            await asyncio.sleep(0)

    @tool
    async def slow(context: Context) -> None:
        await context.enter(ledger.plain("slow"))
        await asyncio.sleep(chance.uniform(0, 2 * DEADLINE))

    @tool
    async def deaf(context: Context) -> None:
        await context.enter(ledger.waiting("deaf"))
        end = time.monotonic() + chance.uniform(0, 3 * DEADLINE)
        while time.monotonic() < end:
            try:
                await asyncio.sleep(chance.uniform(0, DEADLINE))
            except asyncio.CancelledError:
                continue

    @tool(max_concurrency=5, queue_limit=50)
    async def narrow() -> None:
        await asyncio.sleep(chance.uniform(0, DEADLINE / 2))

    @tool(max_concurrency=3, queue_limit=20)
    def threaded(context: Context) -> None:
        context.open(ledger.plain("threaded"))
        threading.Event().wait(chance.uniform(0, 2 * DEADLINE))

    @tool(pool="aside", max_timeout_seconds=3 * DEADLINE)
    def reporting(context: Context) -> None:
        for step in range(chance.randrange(6)):
            context.report_progress(step)
            threading.Event().wait(chance.uniform(0, DEADLINE))

    return [quick, slow, deaf, narrow, threaded, reporting]


async def storm(wire: Wire, names: list[str], number: int, chance: random.Random, arguments: Any = None) -> None:
    """Call and cancel at random, and check that every other call gets one reply in time."""
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    running: dict[int, asyncio.Future[Any]] = {}
    cancelled: set[int] = set()
    for _ in range(number):
        one, reply = wire.begin(chance.choice(names), arguments)
        began[one], running[one] = time.monotonic(), reply
        reply.add_done_callback(lambda _, one=one: ended.setdefault(one, time.monotonic()))  # type: ignore[misc]
        if chance.random() < 0.5:
            victim = chance.choice([*running])
            cancelled.add(victim)
            await wire.cancel(victim)
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.wait(running.values())
    unanswered = {one for one, reply in running.items() if reply.cancelled() or reply.result() is None}
    assert unanswered <= cancelled
    assert all(wire.answers[one] == 1 for one in running if one not in cancelled)
    assert all(wire.answers[one] <= 1 for one in cancelled)
    assert max(ended[one] - began[one] for one in running) < 3 * DEADLINE + MARGIN


@asynccontextmanager
async def memory_wire(tools: list[Any]) -> AsyncIterator[tuple[ServerHost, Wire]]:
    """Connect to a server in this process."""
    async with ServerHost(container_of(*tools), flags=SETTINGS) as host:
        transport = MemoryTransport(host.handler)
        wire = StreamWire(transport.send, transport.receive, handshake=False)
        await wire.open()
        yield host, wire
        assert not [one for one in await transport.close() if "id" in json.loads(one)]
        await wire.close()


@asynccontextmanager
async def http_wire(tools: list[Any]) -> AsyncIterator[tuple[ServerHost, Wire]]:
    """Connect to a server over HTTP."""
    limits = httpx2.Limits(max_connections=None)
    async with serving(container_of(*tools), SETTINGS) as server, httpx2.AsyncClient(limits=limits, timeout=60) as http:
        yield server.host, HttpWire(http, server.url, handshake=False)


Open = Callable[[list[Any]], Any]


@pytest.mark.parametrize(("opened", "number"), [(memory_wire, 1000), (http_wire, 300)], ids=["memory", "http"])
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
async def test_nothing_is_lost_in_a_storm(opened: Open, number: int, seed: int) -> None:
    """No slot, permit, thread, task or other state of a call is left in the end."""
    threads, chance, ledger = server_threads(), random.Random(seed), Ledger()
    tools = tools_of_all_kinds(chance, ledger)
    async with opened(tools) as (host, wire):
        before = asyncio.all_tasks()
        await storm(wire, [one.name for one in tools], number, chance)
        await nothing_left(host, before)
        assert host.handler.inflight.zombies.total > 0
        assert sorted(ledger.made) == sorted(ledger.order)
    await asyncio.to_thread(wait_for_threads, threads)


async def test_no_process_is_lost_in_a_storm(tmp_path: Any) -> None:
    """Tool processes that are killed at random are replaced, affect no other call, and are gone in the end."""
    threads, chance = server_threads(), random.Random(SEED)
    path = str(tmp_path / "pids")
    async with memory_wire([process_tools.whoami, process_tools.spin]) as (host, wire):
        before = asyncio.all_tasks()
        good = [asyncio.ensure_future(_until_good(wire)) for _ in range(5)]
        await storm(wire, ["spin"], 60, chance, {"path": path})
        assert all("pid" in one["structuredContent"] for one in await asyncio.gather(*good))
        await nothing_left(host, before)
        assert host.assembly.processes.processes <= 4
    await asyncio.to_thread(wait_for_threads, threads)
    for pid in _pids_in(path):
        await asyncio.to_thread(wait_until_gone, pid)


async def _until_good(wire: Wire) -> Any:
    """Call a good tool until it has had time to start."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (result := await wire.call("whoami")).get("isError"):
            assert result["_meta"]["axolotl/reason"] == "timeout"
        return result


def _pids_in(path: str) -> list[int]:
    try:
        with open(path) as file:
            return [int(line) for line in file]
    except FileNotFoundError:
        return []
