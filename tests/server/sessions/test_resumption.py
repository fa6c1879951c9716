"""Resumption of broken event streams."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp import Client as OfficialClient
from pydantic import BaseModel

from axolotl_core import ITool, NoArguments, SchemaTool, ToolContext
from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.sessions import event_archive as resumption
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.peers.session_client import Client, Event
from tests.support.peers.wire import JSON_HEADERS, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import container_of

CHANGED = "notifications/tools/list_changed"
UNTHROTTLED = {"protocol": {"progress_per_second": 1_000_000}}


class Told(BaseModel):
    name: str = ""


class Name(BaseModel):
    name: str


class Talker(ITool[Told, str]):
    """Sends messages as the test requests, then ends."""

    name = "talker"

    def __init__(self) -> None:
        self.calls: dict[str, tuple[ToolContext, asyncio.Event]] = {}

    async def execute(self, arguments: Told, context: ToolContext) -> str:
        context.report_progress(1)
        end = asyncio.Event()
        self.calls[arguments.name] = context, end
        await end.wait()
        return f"done {arguments.name}"

    def say(self, progress: int, name: str = "") -> None:
        """Report progress in a call."""
        self.calls[name][0].report_progress(progress)

    def end(self, name: str = "") -> None:
        """End a call."""
        self.calls[name][1].set()


def talk(name: str = "", id: int = 1) -> bytes:
    return call("talker", {"name": name}, id=id, token=f"token {name}", handshake=True)


def said(events: Sequence[Event]) -> list[Any]:
    """Return the progress or text of each event."""
    told = []
    for event in events:
        body = event.message
        told.append(body["params"]["progress"] if "params" in body else body["result"]["content"][0]["text"])
    return told


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest.fixture
def talker() -> Talker:
    """A tool that sends messages on request."""
    return Talker()


@pytest.fixture
def store() -> MemoryEventStore:
    """The event store."""
    return MemoryEventStore(1000, 1_000_000)


@pytest_asyncio.fixture
async def server(talker: Talker, store: MemoryEventStore) -> AsyncIterator[HttpServer]:
    """A server with that store."""
    async with serving(container_of(talker), event_store=store) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session."""
    client = Client(http, server.url)
    await client.begin()
    return client


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_call_survives_its_connection(
    server: HttpServer, http: httpx2.AsyncClient, talker: Talker, version: str
) -> None:
    """A client that disconnects during a call gets the missed messages, the reply and the end."""
    client = Client(http, server.url)
    await client.begin(version)
    async with client.calling(talk()) as stream:
        first = await stream.take()
        first = await stream.take() if first.is_priming else first
    talker.say(2)
    talker.say(3)
    async with client.hearing(first.id) as stream:
        if version == "2025-11-25":
            assert (await stream.take()).id == first.id
        missed = [await stream.take(), await stream.take()]
        talker.say(4)
        missed.append(await stream.take())
        talker.end()
        assert said([*missed, *await stream.rest()]) == [2, 3, 4, "done "]


async def test_an_answer_waits_for_its_client(client: Client, talker: Talker, server: HttpServer) -> None:
    """The reply of a call that ended meanwhile is delivered on every resumption."""
    async with client.calling(talk()) as stream:
        primed, first = await stream.take(), await stream.take()
    talker.end()
    await until(lambda: not len(server.host.handler.inflight))
    for _ in range(2):
        async with client.hearing(first.id) as stream:
            assert said(await stream.rest()) == ["done "]
    async with client.hearing(primed.id) as stream:
        assert said(await stream.rest()) == [1, "done "]


async def test_only_the_same_stream_is_replayed(client: Client, talker: Talker) -> None:
    """Only events of the resumed stream are replayed."""
    async with client.hearing() as news, client.calling(talk("a")) as a, client.calling(talk("b", 2)) as b:
        unasked = await news.take()
        last = {"a": await a.take(), "b": await b.take()}
        await until(lambda: len(talker.calls) == 2)
    for name in "ab":
        talker.say(2, name)
        talker.end(name)
    for name in "ab":
        async with client.hearing(last[name].id) as stream:
            events = [event for event in await stream.rest() if not event.is_priming]
            assert said(events) == [1, 2, f"done {name}"]
            assert {event.message["params"]["progressToken"] for event in events[:2]} == {f"token {name}"}
            assert len({str(event.id).partition(".")[0] for event in events}) == 1
    async with client.hearing(unasked.id) as stream:
        assert (await stream.take()).is_priming
        assert (await client.end()).status_code == 204
        assert await stream.rest() == []


async def test_coming_back_takes_over(client: Client, talker: Talker) -> None:
    """Resuming a stream that still has a connection ends that connection, without repeated messages."""
    async with client.calling(talk()) as old:
        await old.take()
        first = await old.take()
        async with client.hearing(first.id) as middle:
            assert (await middle.take()).is_priming
            assert await old.rest() == []
            talker.say(2)
            second = await middle.take()
            async with client.hearing(second.id) as new:
                assert (await new.take()).id == second.id
                assert await middle.rest() == []
                talker.say(3)
                talker.end()
                assert said(await new.rest()) == [3, "done "]


async def test_news_are_kept_too(server: HttpServer, client: Client) -> None:
    """A resumed GET stream delivers missed changes once."""
    async with client.hearing() as stream:
        primed = await stream.take()
    (session,) = server.app.sessions._by_id.values()
    await until(lambda: not session.in_use)
    server.host.registry.register(SchemaTool("fresh", {}, print))
    async with client.hearing(primed.id) as stream:
        assert (await stream.take()).is_priming
        missed = await stream.take()
        assert missed.message["method"] == CHANGED
        server.host.registry.unregister("fresh")
        assert (await stream.take()).message["method"] == CHANGED
        async with client.listen() as second:
            assert second.status_code == 409
        async with client.hearing(missed.id) as third:
            assert await stream.rest() == []
            assert (await third.take()).id == missed.id
            assert (await third.take()).message["method"] == CHANGED


async def test_a_new_stream_begins_anew(server: HttpServer, client: Client, store: MemoryEventStore) -> None:
    """A new GET stream does not replay, and ids of the previous stream are invalid."""
    async with client.hearing() as stream:
        primed = await stream.take()
    (session,) = server.app.sessions._by_id.values()
    await until(lambda: not session.in_use)
    server.host.registry.register(SchemaTool("fresh", {}, print))
    await until(lambda: len(store) == 2)
    async with client.hearing() as stream:
        assert (await stream.take()).id != primed.id
        assert len(store) == 1
        server.host.registry.unregister("fresh")
        assert (await stream.take()).message["method"] == CHANGED
        async with client.listen(**{"Last-Event-ID": str(primed.id)}) as response:
            assert response.status_code == 400


GARBAGE = ["x", "1", ".", "0123456789abcdef.", ".1", "0" * 16 + ".1", "0123456789ABCDEF.1", "x" * 5000, "\x7f", "a.b.c"]


async def test_an_unknown_event_is_refused(client: Client, talker: Talker) -> None:
    """An unknown event id is an error of the client that affects neither the stream nor the session."""
    async with client.calling(talk()) as stream:
        known = str((await stream.take()).id)
        for tried in (*GARBAGE, *(f"{event_id}{known}" for event_id in GARBAGE)):
            async with client.listen(**{"Last-Event-ID": tried}) as response:
                assert response.status_code == 400, tried
        await stream.take()
        talker.end()
        assert said(await stream.rest()) == ["done "]
    almost = [f"{known}999", known.replace(".", ".x"), *(f"{known}{event_id}" for event_id in GARBAGE)]
    for tried in (*GARBAGE, *almost):
        async with client.listen(**{"Last-Event-ID": tried}) as response:
            assert response.status_code == 400, tried
            assert b"done" not in await response.aread()
    assert (await client.post(message("ping"))).status_code == 200


async def test_an_event_of_another_session_is_refused(server: HttpServer, client: Client, talker: Talker) -> None:
    """Events of other sessions cannot be replayed."""
    stranger = Client(client.http, client.url)
    await stranger.begin()
    async with client.calling(talk()) as stream:
        last = str((await stream.take()).id)
        async with stranger.listen(**{"Last-Event-ID": last}) as response:
            assert response.status_code == 400
        talker.end()
        await stream.rest()
    async with stranger.listen(**{"Last-Event-ID": last}) as response:
        assert (response.status_code, b"done" in await response.aread()) == (400, False)
    async with client.hearing(last) as stream:
        assert said(await stream.rest()) == [1, "done "]


async def test_an_id_that_was_sent_twice_is_refused(client: Client, talker: Talker) -> None:
    """Two Last-Event-ID headers are rejected, even if both are correct."""
    async with client.calling(talk()) as stream:
        last = str((await stream.take()).id)
        pairs = [("Accept", "text/event-stream"), *client.headers.items()]
        headers = [*pairs, ("Last-Event-ID", last), ("Last-Event-ID", last)]
        assert (await client.http.get(client.url, headers=headers)).status_code == 400
        talker.end()


async def test_the_end_of_a_session_is_the_end_of_its_events(
    client: Client, talker: Talker, store: MemoryEventStore
) -> None:
    """DELETE ends all streams of a session and drops their stored events."""
    async with client.calling(talk()) as stream:
        last = str((await stream.take()).id)
    async with client.hearing(last) as resumed:
        assert (await resumed.take()).is_priming
        assert (await resumed.take()).message["params"]["progress"] == 1
        await client.end()
        assert await resumed.rest() == []
    await until(lambda: not len(store))
    async with client.listen(**{"Last-Event-ID": last}) as response:
        assert response.status_code == 404
    assert len(store) == 0


async def test_expiry_drops_events(server: HttpServer, client: Client, talker: Talker, store: MemoryEventStore) -> None:
    """An expired session leaves no events in the store."""
    async with client.calling(talk()) as stream:
        await stream.take()
        await stream.take()
        talker.end()
        await stream.rest()
    assert len(store) == 3
    (session,) = server.app.sessions._by_id.values()
    await until(lambda: not session.in_use)
    session.last_used -= 100_000
    server.app.sessions._drop_idle()
    await until(lambda: not len(store))


async def test_a_live_stream_outlives_its_events(http: httpx2.AsyncClient, talker: Talker) -> None:
    """A running stream can be resumed even if its events were dropped."""
    async with serving(container_of(talker), {"sessions": {"max_events": 1}}) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.hearing() as news:
            unasked = await news.take()
            async with client.calling(talk()) as stream:
                first = await stream.take()
        async with client.hearing(unasked.id) as news:
            assert (await news.take()).is_priming
            server.host.registry.register(SchemaTool("fresh", {}, print))
            assert (await news.take()).message["method"] == CHANGED
        talker.say(2)
        talker.end()
        await until(lambda: not len(server.host.handler.inflight))
        async with client.hearing(first.id) as stream:
            assert said(await stream.rest()) == ["done "]


class Shy(ITool[NoArguments, str]):
    """Closes the connection twice, and replies when it is released."""

    name = "shy"

    def __init__(self) -> None:
        self.again = asyncio.Event()
        self.release = asyncio.Event()

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        context.hang_up()
        await self.again.wait()
        context.hang_up()
        await self.release.wait()
        return "patience"


async def test_a_call_can_hang_up(http: httpx2.AsyncClient) -> None:
    """A tool can close the connection: the client gets an id and a delay, reconnects, and gets the reply."""
    shy = Shy()
    async with serving(container_of(shy), {"sessions": {"retry_seconds": 0.25}}) as server:
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
    for resumable in (True, False):
        async with serving(container_of(shy), {"sessions": {"resumable": resumable}}) as server:
            client = Client(http, server.url)
            await client.begin()
            stateless = await http.post(server.url, content=call("shy"), headers=mirrored(name="shy"))
            accept = "application/json" if resumable else JSON_HEADERS["Accept"]
            replies = [stateless, await client.post(call("shy", handshake=True), Accept=accept)]
            assert [reply.json()["result"]["content"][0]["text"] for reply in replies] == ["patience", "patience"]


async def test_the_official_client_comes_back() -> None:
    """The official client reconnects during a call and gets the result."""
    shy = Shy()
    async with (
        serving(container_of(shy), {"sessions": {"retry_seconds": 0.01}}) as server,
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

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
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
    assert "the event store does not" in caplog.text


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


async def test_replay_and_presence_do_not_race(http: httpx2.AsyncClient, talker: Talker) -> None:
    """With repeated resumption during a call, every message arrives once and in order."""
    async with serving(container_of(talker), UNTHROTTLED, event_store=SlowStore(1000, 1_000_000)) as server:
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


async def test_a_store_is_told_before_a_session_is_forgotten(http: httpx2.AsyncClient, talker: Talker) -> None:
    """No event is appended to a deleted session, however slow the store is."""
    store = SlowStore(1000, 1_000_000)
    async with serving(container_of(talker), UNTHROTTLED, event_store=store) as server:
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
