"""Nothing stays behind after a call, however it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.faults.wires import HttpWire, StreamWire, Wire
from tests.support.commands import constants
from tests.support.servers.server_process import over_http, starting
from tests.support.servers.serving import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

TARGET = "tests.faults.leaking_tools:Container"
CALLS = 40
ROUNDS = 5
FEW_EVENTS = constants(
    {"axolotl_server.http.admission.MAX_LAG_SECONDS": 1000, "axolotl_server.sessions.sessions.MAX_EVENTS": 10}
)
"""Stored messages of a session grow up to a limit, which is reached at once."""
WAYS = [f"{transport}, {era}" for transport in ("stdio", "http") for era in ("stateless", "handshake")]
ENDINGS = (
    *("reply", "report", "refuse", "crash", "hang", "wait_for_cancellation", "cancel_itself"),
    *("use_thread", "leave_thread", "use_process", "crash_in_process"),
)


@asynccontextmanager
async def wire_to_process(way: str) -> AsyncIterator[Wire]:
    """Start a server in a process of its own, whose objects can be counted, and connect to it."""
    transport, _, era = way.partition(", ")
    handshake = era == "handshake"
    if transport == "stdio":
        async with starting(TARGET, "--log-level", "error") as server:
            stream = StreamWire(server.say, server.hear_line, handshake=handshake)
            await stream.open()
            yield stream
            await stream.close()
        return
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    async with (
        over_http(TARGET, **FEW_EVENTS) as server,
        httpx2.AsyncClient(timeout=PATIENCE_SECONDS, limits=limits) as http,
    ):
        posts = HttpWire(http, f"http://127.0.0.1:{server.port}/mcp", handshake=handshake)
        await posts.open()
        yield posts


async def _use(wire: Wire, name: str) -> None:
    """Make some calls at once, and wait until they have ended."""
    begun = [wire.begin(name) for _ in range(CALLS)]
    if name == "wait_for_cancellation":
        await asyncio.sleep(0.2)  # sleeps: long enough for the calls to be watched
        await asyncio.gather(*(wire.cancel(number) for number, _ in begun))
    await asyncio.gather(*(ended for _, ended in begun))
    if name == "leave_thread":
        await asyncio.sleep(0.3)  # sleeps: the threads end a little later


async def _leaks(wire: Wire, name: str) -> dict[str, int]:
    """Return what grows with every round of calls, by the least growth; caches grow in the first rounds only."""
    leaks: dict[str, int] | None = None
    await _use(wire, name)
    for _ in range(ROUNDS):
        before = (await wire.call("count_objects"))["structuredContent"]
        await _use(wire, name)
        after = (await wire.call("count_objects"))["structuredContent"]
        grown = {what: count - before.get(what, 0) for what, count in after.items()}
        least = grown if leaks is None else {what: min(more, grown.get(what, 0)) for what, more in leaks.items()}
        leaks = {what: more for what, more in least.items() if more >= CALLS}
        if not leaks:
            break
    return leaks or {}


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_stays_behind(way: str) -> None:
    """With each round of calls, the server holds less than one more object of any type per call."""
    async with wire_to_process(way) as wire:
        leaks = {name: await _leaks(wire, name) for name in ENDINGS}
    assert not any(leaks.values()), leaks
