"""Closed responses, waiting questions and failing event stores in resumable sessions."""

import asyncio
import json
from collections.abc import Sequence

import httpx2
import pytest
from mcp import Client as OfficialClient

from axolotl_core import Context, ITool, NoArguments
from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.sessions import event_archive as resumption
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.peers.session_client import Client, Event
from tests.support.peers.wire import JSON_HEADERS, call, mirrored
from tests.support.scenarios.resumable_calls import Talker, client, said, server, store, talk, talker
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until
from tests.support.tools import Name, container_of

__all__ = ["client", "server", "store", "talker"]


class Shy(ITool[NoArguments, str]):
    """Closes the connection twice, and replies when it is released."""

    name = "shy"

    def __init__(self) -> None:
        self.again = asyncio.Event()
        self.release = asyncio.Event()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        context.hang_up()
        await self.again.wait()
        context.hang_up()
        await self.release.wait()
        return "patience"


async def test_a_call_can_hang_up(http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool can close the connection: the client gets an id and a delay, reconnects, and gets the reply."""
    shy = Shy()
    monkeypatch.setattr("axolotl_server.sessions.sessions._RECONNECT_SECONDS", 0.25)
    async with serving(container_of(shy)) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(call("shy", handshake=True)) as stream:
            primed, sent_away = await stream.rest()
        assert primed.is_priming
        assert (sent_away.retry, sent_away.data) == (250, None)
        async with client.hearing(primed.id) as stream:
            assert (await stream.take()).id == primed.id
            shy.again.set()
            assert [event.retry for event in await stream.rest()] == [250]
        shy.release.set()
        async with client.hearing(primed.id) as stream:
            assert said([event for event in await stream.rest() if not event.is_priming]) == ["patience"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_clients_are_not_hung_up_on(http: httpx2.AsyncClient, version: str) -> None:
    """Connections of older clients are not closed."""
    shy = Shy()
    shy.again.set()
    shy.release.set()
    async with serving(container_of(shy)) as server:
        client = Client(http, server.url)
        await client.begin(version)
        assert (await client.post(call("shy", handshake=True))).json()["result"]["content"][0]["text"] == "patience"


async def test_who_cannot_come_back_is_not_hung_up_on(http: httpx2.AsyncClient) -> None:
    """Connections are not closed for clients that cannot resume."""
    shy = Shy()
    shy.again.set()
    shy.release.set()
    for resumable in ("streams", "off"):
        async with serving(container_of(shy), {"sessions": {"resumable": resumable}}) as server:
            client = Client(http, server.url)
            await client.begin()
            stateless = await http.post(server.url, content=call("shy"), headers=mirrored(name="shy"))
            accept = "application/json" if resumable == "streams" else JSON_HEADERS["Accept"]
            replies = [stateless, await client.post(call("shy", handshake=True), Accept=accept)]
            assert [reply.json()["result"]["content"][0]["text"] for reply in replies] == ["patience", "patience"]


async def test_the_official_client_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The official client reconnects during a call and gets the result."""
    shy = Shy()
    monkeypatch.setattr("axolotl_server.sessions.sessions._RECONNECT_SECONDS", 0.01)
    async with (
        serving(container_of(shy)) as server,
        OfficialClient(server.url, mode="legacy", read_timeout_seconds=PATIENCE_SECONDS) as client,
    ):
        running = asyncio.ensure_future(client.call_tool("shy"))
        (session,) = server.app.sessions._by_id.values()
        await until(lambda: len(session._streams) == 2 and all(s.connected for s in session._streams.values()))
        shy.again.set()
        shy.release.set()
        assert (await running).content[0].text == "patience"  # type: ignore[union-attr]


class Curious(ITool[NoArguments, str]):
    """Asks for a name."""

    name = "curious"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return f"Hello, {(await context.ask(Name, 'Who are you?')).name}!"


async def test_a_question_waits_for_its_client(http: httpx2.AsyncClient) -> None:
    """An open question is sent again on resumption, and its answer reaches the call."""
    async with serving(container_of(Curious())) as server:
        client = Client(http, server.url)
        await client.begin(elicitation={"form": {}})
        async with client.calling(call("curious", handshake=True)) as stream:
            primed = await stream.take()
        async with client.hearing(primed.id) as stream:
            assert (await stream.take()).is_priming
            asked = (await stream.take()).message
            assert asked["method"] == "elicitation/create"
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"name": "Ada"}}}
            assert (await client.post(json.dumps(answer).encode())).status_code == 202
            assert said(await stream.rest()) == ["Hello, Ada!"]


class BrokenStore(IEventStore):
    """A store that fails on request."""

    def __init__(self) -> None:
        self.works = MemoryEventStore(100, 100_000)
        self.broken = True

    async def append(self, session: str, stream: str, message: bytes) -> str:
        self.fail()
        return await self.works.append(session, stream, message)

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        self.fail()
        return await self.works.after(session, stream, event_id)

    async def forget(self, session: str, stream: str | None = None) -> None:
        self.fail()
        await self.works.forget(session, stream)

    def fail(self) -> None:
        if self.broken:
            raise ConnectionError("the store is down")


async def test_a_broken_store_costs_resumption_only(
    http: httpx2.AsyncClient, talker: Talker, caplog: pytest.LogCaptureFixture
) -> None:
    """While the store fails, calls are answered on streams without ids, and resumption can be retried."""
    store, shy = BrokenStore(), Shy()
    shy.again.set()
    shy.release.set()
    async with serving(container_of(talker, shy), event_store=store) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(talk()) as stream:
            first = await stream.take()
            assert (first.id, first.message["params"]["progress"]) == (None, 1)
            store.broken = False
            talker.say(2)
            second = await stream.take()
            assert second.id
            store.broken = True
            async with client.listen(**{"Last-Event-ID": second.id}) as response:
                assert response.status_code == 503
            talker.end()
            assert said(await stream.rest()) == ["done "]
        async with client.calling(call("shy", handshake=True)) as stream:
            assert said(await stream.rest()) == ["patience"]
        await client.end()
    assert "the event store failed" in caplog.text


class SilentStore(MemoryEventStore):
    """A store that never answers."""

    async def append(self, session: str, stream: str, message: bytes) -> str:
        await asyncio.Event().wait()
        return "never"

    async def forget(self, session: str, stream: str | None = None) -> None:
        await asyncio.Event().wait()


async def test_nobody_waits_for_a_silent_store(
    http: httpx2.AsyncClient, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that hangs is retried at intervals, and nothing waits for it."""
    monkeypatch.setattr(resumption, "_STORE_SECONDS", 0.01)
    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 1_000_000)
    async with serving(container_of(talker), event_store=SilentStore(10, 10)) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(talk()) as stream:
            first = await stream.take()
            talker.end()
            assert said([first, *await stream.rest()]) == [1, "done "]
            assert first.id is None
        async with client.hearing():
            pass
        await client.end()
        await until(lambda: not server.app.sessions._forgetting)


class SlowStore(MemoryEventStore):
    """A store that takes several loop iterations per operation."""

    async def append(self, session: str, stream: str, message: bytes) -> str:
        await self._pause()
        event_id = await super().append(session, stream, message)
        await self._pause()
        return event_id

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        await self._pause()
        events = await super().after(session, stream, event_id)
        await self._pause()
        return events

    async def _pause(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)


async def test_replay_and_presence_do_not_race(
    http: httpx2.AsyncClient, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With repeated resumption during a call, every message arrives once and in order."""
    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 1_000_000)
    async with serving(container_of(talker), event_store=SlowStore(1000, 1_000_000)) as server:
        client = Client(http, server.url)
        await client.begin()
        heard: list[Event] = []
        async with client.calling(talk()) as stream:
            heard += [await stream.take(), await stream.take()]

        async def chatter() -> None:
            for progress in range(2, 200):
                talker.say(progress)
                for _ in range(4):
                    await asyncio.sleep(0)
            talker.end()

        talking = asyncio.ensure_future(chatter())
        while not heard[-1].data or "result" not in heard[-1].message:
            async with client.hearing(heard[-1].id) as stream:
                for _ in range(1 + len(heard) % 7):
                    event = await stream.next()
                    if event is None:
                        break
                    heard += [] if event.is_priming else [event]
        await talking
    assert said(heard[1:]) == [*range(1, 200), "done "]


async def test_a_store_is_told_before_a_session_is_forgotten(
    http: httpx2.AsyncClient, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event is appended to a deleted session, however slow the store is."""
    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 1_000_000)
    store = SlowStore(1000, 1_000_000)
    async with serving(container_of(talker), event_store=store) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(talk()) as stream, client.hearing() as news:
            await stream.take()
            await news.take()
            for progress in range(2, 20):
                talker.say(progress)
            await client.end()
            await stream.rest()
            await news.rest()
        await until(lambda: not server.app.sessions._forgetting)
    assert len(store) == 0
