"""Resumption of broken event streams."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import Principal
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server.http.event_stream import EventStream, KeepAlive
from axolotl_server.sessions.session import Session
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.peers.session_client import Client
from tests.support.peers.task_hosts import serve_tasks
from tests.support.peers.task_peers import Job
from tests.support.peers.wire import call, message
from tests.support.scenarios.resumable_calls import Talker, client, said, server, store, talk, talker
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.stores.redis_server import RedisServer
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
    limits = {"resumable": "replies", "max_total_event_bytes": 1_000_000}
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


async def test_events_of_many_sessions_count_for_their_caller(http: httpx2.AsyncClient) -> None:
    """Above the limit, a caller with many small sessions loses its replies, and not one with fewer bytes in all."""
    limits = {"sessions": {"resumable": "replies", "max_total_event_bytes": 1_000_000}}
    async with serving(container_of(Echo()), limits, token_verifier=Named()) as server, httpx2.AsyncClient() as other:
        http.headers["Authorization"], other.headers["Authorization"] = "Bearer eve", "Bearer ada"
        [kept] = await replies_of(modest := Client(other, server.url), 200_000)
        for _ in range(6):
            await replies_of(Client(http, server.url), 150_000)
        assert await replayed(modest, kept) == 1


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


async def test_a_live_stream_outlives_its_events(
    http: httpx2.AsyncClient, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running stream can be resumed even if its events were dropped."""
    monkeypatch.setattr("axolotl_server.sessions.sessions.MAX_EVENTS", 1)
    async with serving(container_of(talker)) as server:
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


class Named(ITokenVerifier):
    """Accepts every token: it names the caller."""

    async def verify(self, token: str) -> Principal:
        return Principal(token)


class Scoped(ITokenVerifier):
    """Accepts every token of ada: it names her scopes."""

    async def verify(self, token: str) -> Principal:
        return Principal("ada", scopes=frozenset(token.split(".")))


@pytest_asyncio.fixture(params=["memory", "directory", "redis"])
async def servers(
    request: pytest.FixtureRequest, talker: Talker, tmp_path: Path
) -> AsyncIterator[tuple[HttpServer, HttpServer]]:
    """Two processes that share sessions, or one twice, with a tool that needs a scope."""
    talker.scopes = frozenset({"talk"})
    settings: dict[str, Any] = {"sessions": {"resumable": "replies"}}
    if request.param == "directory":
        settings["sessions"]["directory"] = str(tmp_path)
    elif request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis")
        settings["redis"] = {"url": redis.url, "prefix": redis.new_prefix()}
    async with AsyncExitStack() as stack:
        count = 1 if request.param == "memory" else 2
        started = [
            await stack.enter_async_context(serving(container_of(talker, Echo()), settings, token_verifier=Scoped()))
            for _ in range(count)
        ]
        yield started[0], started[-1]


class Returning(Client):
    """A client that resumes streams with other tokens and at other processes."""

    async def begin(self, version: str = "2025-11-25", **capabilities: Any) -> httpx2.Response:
        self.http.headers["Authorization"] = "Bearer talk.other"
        return await super().begin(version, **capabilities)

    async def refusal(self, server: HttpServer, token: str, last_event_id: str | None) -> tuple[int, str] | None:
        """Resume a stream, and return the answer unless it is a stream."""
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {token}", **self.headers}
        given = {**headers, "Last-Event-ID": str(last_event_id)}
        async with self.http.stream("GET", server.url, headers=given) as response:
            return None if response.status_code == 200 else (response.status_code, (await response.aread()).decode())


async def test_access_is_checked_again_when_a_stream_is_resumed(
    servers: tuple[HttpServer, HttpServer], http: httpx2.AsyncClient, talker: Talker
) -> None:
    """The same subject without the scope of the tool gets the answer for an unknown stream, also after the call."""
    one, other = servers
    client = Returning(http, one.url)
    await client.begin()
    unknown = await client.refusal(one, "talk.other", f"{'0' * 32}.1")
    assert unknown is not None
    assert unknown[0] == 400
    async with client.calling(talk()) as stream:
        await stream.take()
        first = await stream.take()
    for process in (one, other):
        assert await client.refusal(process, "other", first.id) == unknown
        assert await client.refusal(process, "talk", first.id) is None
        assert await client.refusal(process, "talk.other.more", first.id) is None
    talker.end()
    await until(lambda: not len(one.host.handler.inflight))
    for process in (one, other):
        assert await client.refusal(process, "other", first.id) == unknown
        own = process.app.sessions.mark(Principal("ada", scopes=frozenset({"other"})))
        forged = str(first.id).replace(str(first.id)[16:32], own)
        assert await client.refusal(process, "other", forged) == unknown
        client.url = process.url
        async with client.hearing(first.id) as stream:
            assert said([event for event in await stream.rest() if not event.is_priming]) == ["done "]
    one.host.registry.unregister("talker")
    assert await client.refusal(one, "talk", first.id) == unknown


async def test_streams_of_no_feature_need_the_same_rights(
    servers: tuple[HttpServer, HttpServer], http: httpx2.AsyncClient
) -> None:
    """A list, or the stream for notifications, is resumed only with the scopes and roles with which it began."""
    one, other = servers
    client = Returning(http, one.url)
    await client.begin()
    async with client.calling(message("tools/list")) as stream:
        listed = (await stream.rest())[0]
    async with client.hearing() as stream:
        news = await stream.take()
    for event in (listed, news):
        for process in (one, other):
            refused = await client.refusal(process, "other", event.id)
            assert refused is not None
            assert refused[0] == 400
            assert await client.refusal(process, "other.talk", event.id) is None


@pytest.mark.parametrize("is_stored", [False, True], ids=["memory", "sqlite"])
async def test_the_stream_of_a_result_needs_access_too(
    http: httpx2.AsyncClient, tmp_path: Path, is_stored: bool
) -> None:
    """Whoever may not use the tool of a task does not resume the stream on which its result was sent."""
    job = Job(scopes=frozenset({"talk"}))
    tasks = {"tasks": {"url": f"sqlite:///{tmp_path}/tasks.db"}} if is_stored else {}
    settings = {"sessions": {"resumable": "replies"}, **tasks}
    async with serving(container_of(job), settings, token_verifier=Scoped()) as server:
        await serve_tasks(server.host, works=True)
        client = Returning(http, server.url)
        await client.begin()
        async with client.calling(message("tools/call", {"name": "job", "task": {}})) as stream:
            task = (await stream.rest())[-1].message["result"]["task"]
        await job.started.wait()
        async with client.calling(message("tasks/result", {"taskId": task["taskId"]}, id=2)) as stream:
            first = await stream.take()
            job.release.set()
            assert said([(await stream.rest())[-1]]) == ["done"]
        assert await client.refusal(server, "other", first.id) is not None
        assert await client.refusal(server, "talk.other", first.id) is None
