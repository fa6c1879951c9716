"""Completion, cancellation, timeout and disconnect at almost the same time."""

import asyncio
import collections
import json
import random
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, ITool
from axolotl_server import HttpApp, ServerHost
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import container_of

ROUNDS = 400
SEED = 20260728


class Turns(BaseModel):
    turns: int


class Racer(ITool[Turns, int]):
    """Yields to the event loop a number of times."""

    name = "racer"
    timeout_seconds = 0.001
    max_concurrency = 10_000

    async def execute(self, arguments: Turns, context: Context) -> int:
        for turn in range(arguments.turns):
            context.report_progress(turn)
            await asyncio.sleep(0)
        return arguments.turns


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def assert_nothing_is_left(host: ServerHost, tasks_before: set[Any]) -> None:
    assert not host.handler.inflight
    assert not host.handler.inflight._by_share
    assert not host.assembly.deadlines._timed
    assert asyncio.all_tasks() == tasks_before


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
async def test_a_stream_answers_each_request_at_most_once(seed: int) -> None:
    """A call gets one reply, or none if it was canceled, and leaves nothing behind."""
    chance = random.Random(seed)
    before = asyncio.all_tasks()
    async with ServerHost(container_of(Racer())) as host:
        transport = MemoryTransport(host.handler)
        cancelled = set()
        for number in range(ROUNDS):
            transport.send(
                call("racer", {"turns": chance.randrange(40)}, id=number, token=chance.choice([number, None]))
            )
            await turns(chance.randrange(4))
            if chance.random() < 0.5:
                victim = chance.randrange(number + 1)
                cancelled.add(victim)
                transport.send(message("notifications/cancelled", {"requestId": victim}, id=None))
            await turns(chance.randrange(4))
        messages = [json.loads(reply) for reply in await transport.close(PATIENCE_SECONDS)]
        assert_nothing_is_left(host, before)
    replies = collections.Counter(reply["id"] for reply in messages if "id" in reply)
    assert all(count == 1 for count in replies.values())
    assert replies.keys() | cancelled == set(range(ROUNDS))
    _assert_progress_precedes_the_reply(messages)


def _assert_progress_precedes_the_reply(messages: list[Any]) -> None:
    answered = set()
    for one in messages:
        if "id" in one:
            answered.add(one["id"])
        else:
            assert one["params"]["progressToken"] not in answered


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
async def test_an_http_request_has_one_response(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An HTTP request gets exactly one response and leaves nothing behind."""
    chance = random.Random(seed)
    before = asyncio.all_tasks()
    monkeypatch.setattr("axolotl_server.calls.running_call._WATCH_AFTER_SECONDS", 0.0005)
    async with ServerHost(container_of(Racer())) as host:
        app = HttpApp(host.handler, host.settings)
        exchanges = []
        for _ in range(ROUNDS):
            exchanges.append(asyncio.ensure_future(_exchange(app, chance)))
            await turns(chance.randrange(4))
        outcomes = await asyncio.gather(*exchanges)
        await turns(3)
        assert_nothing_is_left(host, before)
    assert set(outcomes) <= {"json", "stream", "nothing"}
    assert len(set(outcomes)) > 1


async def _exchange(app: HttpApp, chance: random.Random) -> str:
    """Post a call, and disconnect after a random time."""
    headers = [(name.lower().encode(), value.encode()) for name, value in mirrored(name="racer").items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [*headers, (b"host", b"localhost")]}
    body = call("racer", {"turns": chance.randrange(60)}, token=chance.choice([1, None]))
    patience = chance.randrange(60)
    received, sent = [{"type": "http.request", "body": body}], []

    async def receive() -> Any:
        if received:
            return received.pop()
        await turns(patience)
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        await turns(chance.randrange(2))
        sent.append(event)

    await app(scope, receive, send)
    first, *rest = sent
    assert first["type"] == "http.response.start"
    assert all(event["type"] == "http.response.body" for event in rest)
    assert [bool(event.get("more_body")) for event in rest] == [True] * (len(rest) - 1) + [False]
    if first["status"] == 204:
        return "nothing"
    return "stream" if (b"content-type", b"text/event-stream") in first["headers"] else "json"


async def test_cancelling_before_the_call_began_is_tolerated() -> None:
    """A cancellation before its request has no effect."""
    async with ServerHost(container_of(Racer())) as host:
        transport = MemoryTransport(host.handler)
        transport.send(message("notifications/cancelled", {"requestId": 1}, id=None))
        transport.send(call("racer", {"turns": 1}, id=1))
        assert json.loads(await transport.receive())["id"] == 1
        await transport.close()
