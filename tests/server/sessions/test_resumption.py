"""Resumption of broken event streams."""

from pathlib import Path

import httpx2
import pytest

from axolotl_core import SchemaTool
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server.asgi.event_stream import EventStream, KeepAlive
from axolotl_server.sessions.session import Session
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.peers.session_client import Client
from tests.support.peers.wire import call, message
from tests.support.scenarios.resumable_calls import Talker, client, said, server, store, talk, talker
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, container_of

__all__ = ["client", "server", "store", "talker"]

CHANGED = "notifications/tools/list_changed"


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
        assert (await client.end()).status_code == 200
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


async def test_the_rest_of_an_ended_stream_waits_for_one_connection() -> None:
    """Resuming a stream that has ended closes an earlier connection, so that its messages wait only once in memory."""

    async def send(event: object) -> None:
        return

    keep_alive, session = KeepAlive(PATIENCE_SECONDS), Session(ANONYMOUS, MemoryEventStore(10, 1000), 1.0)
    stream = session.open_stream(EventStream(send, [], keep_alive))
    for number in range(3):
        stream.put(message("notifications/message", {"data": number}, id=None))
    stream.end()
    await stream.wait_until_idle()
    responses = [EventStream(send, [], keep_alive) for _ in range(3)]
    attached = [await session.resume(response, f"{stream.id}.1".encode()) for response in responses]
    assert [response.waiting for response in responses] == [0, 0, 2]
    attached[0].detach(responses[0])
    attached[2].detach(responses[2])
    await session.resume(responses[0], f"{stream.id}.1".encode())
    assert responses[2].waiting == 2


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


@pytest.mark.parametrize("place", ["memory", "directory"])
async def test_events_of_all_sessions_are_bounded(place: str, http: httpx2.AsyncClient, tmp_path: Path) -> None:
    """Above the limit for all sessions, the one with the most bytes loses its oldest reply; ended ones make room."""
    limits = {"stream_replies": True, "max_total_event_bytes": 1_000_000}
    settings = {"sessions": limits if place == "memory" else {**limits, "directory": str(tmp_path)}}
    async with serving(container_of(Echo()), settings) as server:
        small, large = Client(http, server.url), Client(http, server.url)
        kept = {small: await replies_of(small, 100_000), large: await replies_of(large, 400_000, 400_000)}
        assert await replayed(small, kept[small][0]) == 1
        assert await replayed(large, kept[large][0]) == 1
        kept[large] += await replies_of(large, 400_000, begins=False)
        assert await replayed(small, kept[small][0]) == 1
        assert [await replayed(large, primed) for primed in kept[large]] == [None, 1, 1]
        await large.end()
        assert await replayed(small, (await replies_of(small, 800_000, begins=False))[0]) == 1


async def replies_of(client: Client, *sizes: int, begins: bool = True) -> list[str]:
    """Get replies of these sizes; return where the stream of each begins."""
    if begins:
        await client.begin()
    places = []
    for size in sizes:
        async with client.calling(call("echo", {"text": "x" * size}, handshake=True)) as stream:
            places.append(str((await stream.take()).id))
            await stream.rest()
    return places


async def replayed(client: Client, place: str) -> int | None:
    """Resume a stream; return the number of its messages, or None if it is not known any more."""
    async with client.listen(**{"Last-Event-ID": place}) as response:
        if response.status_code != 200:
            return None
        body: bytes = await response.aread()
        return body.count(b"data: {")


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
