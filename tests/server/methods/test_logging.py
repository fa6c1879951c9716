"""Log messages: the level per connection, and the stream of their request."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from axolotl_core import Context, NoArguments, tool
from axolotl_core.tools.tool import ITool
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.session_client import Client
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, serving
from tests.support.tools import Probe


@tool
async def speak(context: Context) -> str:
    """Log at two levels."""
    context.log("info", "info")
    context.log("error", "error")
    return "spoken"


@tool(execution="thread")
def shout(context: Context) -> str:
    """Log much from a thread."""
    for number in range(50):
        context.log("error", number)
    return "shouted"


async def heard(peer: Peer, name: str = "speak", **meta: Any) -> list[Any]:
    peer.call(name, **meta)
    said = []
    while "id" not in (one := await peer.receive()):
        said.append(one["params"]["data"])
    return said


async def test_each_connection_has_its_own_level() -> None:
    """Each connection has its own level."""
    async with conversing(container_with((speak,))) as host:
        loud, quiet, silent = [await Peer(host).shake_hands() for _ in range(3)]
        assert (await loud.ask("logging/setLevel", {"level": "debug"}))["result"] == {}
        assert (await quiet.ask("logging/setLevel", {"level": "error"}))["result"] == {}
        assert (await silent.ask("logging/setLevel", {"level": "emergency"}))["result"] == {}
        assert await heard(loud) == ["info", "error"]
        assert await heard(quiet) == ["error"]
        assert await heard(silent) == []


async def test_the_level_of_a_connection_is_nothing_to_stateless_requests() -> None:
    """The level of a connection does not apply to stateless requests."""
    async with conversing(container_with((speak,))) as host:
        peer = await Peer(host).shake_hands()
        await peer.ask("logging/setLevel", {"level": "debug"})
        assert await heard(peer, **META) == []
        wanted: dict[str, Any] = {**META, "io.modelcontextprotocol/logLevel": "error"}
        assert await heard(peer, **wanted) == ["error"]
        assert await heard(peer) == ["info", "error"]


async def test_a_level_may_change_while_a_call_runs() -> None:
    """A new level applies to running calls."""

    class Twice(ITool[NoArguments, str]):
        name = "twice"

        def __init__(self) -> None:
            self.go_on = asyncio.Event()

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            context.log("info", "first")
            await self.go_on.wait()
            context.log("info", "second")
            context.log("alert", "third")
            return "done"

    twice = Twice()
    async with conversing(container_with((twice,))) as host:
        peer = await Peer(host).shake_hands()
        peer.call("twice")
        assert (await peer.receive())["params"]["data"] == "first"
        assert (await peer.ask("logging/setLevel", {"level": "alert"}, id=2))["result"] == {}
        twice.go_on.set()
        assert (await peer.receive())["params"]["data"] == "third"
        assert (await peer.receive())["id"] == 1


async def test_a_thread_logs_in_order() -> None:
    """Log messages of a thread arrive in order, before the reply."""
    async with conversing(container_with((shout,))) as host:
        assert await heard(await Peer(host).shake_hands(), "shout") == list(range(50))


async def test_a_call_may_say_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log messages of a call are limited; the next call can log again."""
    monkeypatch.setattr("axolotl_server.protocol.request.LOG_MESSAGES_PER_SECOND", 3)
    async with conversing(container_with((shout,))) as host:
        peer = await Peer(host).shake_hands()
        for _ in range(2):
            said = await heard(peer, "shout")
            assert said[:3] == [0, 1, 2]
            assert len(said) < 10


async def test_nothing_comes_after_the_reply() -> None:
    """Log messages after the end of a call are dropped."""
    probe = Probe()
    async with conversing(container_with((probe,))) as host:
        peer = await Peer(host).shake_hands()
        peer.call("probe")
        await probe.started.wait()
        probe.release.set()
        await peer.receive()
        assert probe.context is not None
        probe.context.log("emergency", "too late")
        await asyncio.to_thread(probe.context.log, "emergency", "too late")
        assert await peer.close() == []


async def test_messages_go_to_the_stream_of_their_call() -> None:
    """Over HTTP, log messages go to the stream of their call, not to the GET stream."""
    async with (
        serving(container_with((speak,))) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        client = Client(http, server.url)
        await client.begin("2025-06-18")
        async with client.hearing() as news:
            async with client.calling(call("speak", handshake=True)) as stream:
                events = [event.message for event in await stream.rest()]
            assert [event.get("method") for event in events] == ["notifications/message"] * 2 + [None]
            await client.end()
            assert await news.rest() == []


async def test_a_stateless_reply_stays_plain_unless_something_is_said() -> None:
    """Only a request that wants log messages gets a stream."""
    body = message("tools/call", {"name": "speak", "_meta": {**META, "io.modelcontextprotocol/logLevel": "error"}})
    async with serving(container_with((speak,))) as server, httpx2.AsyncClient(verify=False) as http:
        plain = await http.post(server.url, content=call("speak"), headers=mirrored(name="speak"))
        assert plain.headers["content-type"] == "application/json"
        streamed = await http.post(server.url, content=body, headers=mirrored(name="speak"))
        assert streamed.headers["content-type"] == "text/event-stream"
        events = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: ")]
        assert [event.get("method") for event in events] == ["notifications/message", None]


async def test_a_level_that_there_is_none_is_a_mistake_of_the_tool() -> None:
    """An unknown level fails the tool, with or without a listener."""

    @tool
    async def wrong(context: Context) -> str:
        """Log wrongly."""
        context.log("loud", "x")  # type: ignore[arg-type]
        return "never"

    async with conversing(container_with((wrong,))) as host:
        reply = await Peer(host).ask("tools/call", {"name": "wrong"})
        assert reply["result"]["isError"]
