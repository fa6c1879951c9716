"""Calls that clients cancel."""

import asyncio
from collections import Counter

import pytest
from mcp import MCPError

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import by_every_way, by_handshake_ways
from tests.support.clients.simulated_user import Progress

pytestmark = pytest.mark.asyncio(loop_scope="session")


@by_every_way
async def test_a_cancelled_call_stops(peer: IPeer) -> None:
    """A canceled call stops its tool, and the connection stays usable."""
    name, progress = f"cancelled-by-{peer.way}", Progress()
    calling = asyncio.create_task(peer.call("stall", {"name": name}, progress))
    await progress.reached(1)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await peer.text_of("stopped", {"name": name}) == "true"


@by_every_way
async def test_a_client_loses_patience(peer: IPeer) -> None:
    """A tool stops when its client times out."""
    name = f"abandoned-by-{peer.way}"
    with pytest.raises(MCPError, match="timed out"):
        await peer.call("stall", {"name": name}, patience=0.1)
    assert await peer.text_of("stopped", {"name": name}) == "true"


@by_every_way
async def test_a_call_beside_goes_on(peer: IPeer) -> None:
    """Canceling a call does not affect another call of the same tool."""
    names, steps = [f"{number}-of-{peer.way}" for number in (1, 2)], [Progress(), Progress()]
    first, second = (
        asyncio.create_task(peer.call("follow", {"name": name}, step)) for name, step in zip(names, steps, strict=True)
    )
    for step in steps:
        await step.reached(1)
    first.cancel()
    await peer.call("release", {"name": names[1]})
    (block,) = (await second).content
    assert block.model_dump()["text"] == f"{names[1]} followed"
    with pytest.raises(asyncio.CancelledError):
        await first


@by_handshake_ways
async def test_a_cancelled_call_is_over(peer: IPeer) -> None:
    """A client that resumed a call and then canceled it does not resume it again."""
    name, progress = f"over-for-{peer.way}", Progress()
    calling = asyncio.create_task(peer.call("drift", {"name": name}, progress))
    await progress.reached(2)
    calling.cancel()
    assert await peer.text_of("stopped", {"name": name}) == "true"
    await peer.call("overrun")  # enough time for several reconnects
    assert max(Counter(peer.wire.returns).values(), default=0) <= 3
    with pytest.raises(asyncio.CancelledError):
        await calling
