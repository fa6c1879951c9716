"""Event streams over HTTP: content by revision, and slow readers."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import BaseModel

from axolotl_core import Context, ITool
from axolotl_core.protocol.wire import notification
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server.http.event_stream import KEEP_ALIVE, EventStream, KeepAlive
from axolotl_server.protocol.flow_control import MAX_WAITING, MAX_WAITING_BYTES, Backlog, is_droppable
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import JSON_HEADERS, META, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, Probe, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ONLY_POLLING = [(version, version == "2025-11-25") for version in HANDSHAKES]


class Steps(BaseModel):
    steps: int = 3


class Climb(ITool[Steps, str]):
    name = "climb"

    async def execute(self, arguments: Steps, context: Context) -> str:
        for step in range(1, arguments.steps + 1):
            context.report_progress(step, arguments.steps)
            await asyncio.sleep(0)
        return "there"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with default settings."""
    async with serving(container_of(Echo(), Climb())) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest.mark.parametrize(("version", "primed"), ONLY_POLLING)
async def test_a_stream_of_a_call(server: HttpServer, http: httpx2.AsyncClient, version: str, primed: bool) -> None:
    """Every event has an id; clients of revisions with resumption get one before the first event."""
    client = Client(http, server.url)
    await client.begin(version)
    async with client.calling(call("climb", handshake=True, token=1)) as stream:
        events = await stream.rest()
    assert events[0].is_priming is primed
    messages = [event.message for event in events[primed:]]
    assert [sent["params"]["progress"] for sent in messages[:-1]] == [1, 2, 3]
    assert messages[-1]["result"]["content"][0]["text"] == "there"
    assert len({event.id for event in events}) == len(events)
    assert {event.retry for event in events} == {None}


@pytest.mark.parametrize(("version", "primed"), ONLY_POLLING)
async def test_a_get_stream(http: httpx2.AsyncClient, version: str, primed: bool) -> None:
    """The same for GET streams, which tell when to reconnect when the server closes them."""
    async with serving(container_of(Echo())) as server:
        client = Client(http, server.url)
        await client.begin(version)
        async with client.hearing() as stream:
            assert not primed or (await stream.take()).is_priming
            server.host.registry.register(SchemaTool("fresh", {}, print))
            news = await stream.take()
            assert news.message["method"] == "notifications/tools/list_changed"
            assert news.id
            server.app.sessions.end_streams()
            assert [event.retry for event in await stream.rest()] == [1000] * primed


async def test_ids_are_unique_in_a_session(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Event ids are unique in a session, name their stream, and are printable ASCII."""
    client = Client(http, server.url)
    await client.begin()
    seen: list[list[str]] = []
    for _ in range(3):
        async with client.calling(call("climb", handshake=True, token=1)) as stream:
            seen.append([event.id or "" for event in await stream.rest()])
    ids = [event_id for stream_ids in seen for event_id in stream_ids]
    assert len(set(ids)) == len(ids)
    assert all(event_id and all("!" <= letter <= "~" for letter in event_id) for event_id in ids)
    assert [len({event_id.partition(".")[0] for event_id in stream_ids}) for stream_ids in seen] == [1, 1, 1]
    assert len({stream_ids[0].partition(".")[0] for stream_ids in seen}) == 3


async def test_a_stateless_stream_has_no_ids(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Streams of stateless requests have no event ids."""
    client = Client(http, server.url)
    await client.begin()
    headers = {**mirrored(name="climb"), **client.headers, "Last-Event-ID": "0123456789abcdef.1"}
    body = call("climb", token=1)
    async with http.stream("POST", server.url, content=body, headers=headers) as response:
        events = await EventReader(response).rest()
    assert [event.id for event in events] == [None] * 4
    assert events[-1].message["result"]["content"][0]["text"] == "there"


async def test_without_resumption_there_are_no_ids(http: httpx2.AsyncClient) -> None:
    """Without resumption there are no event ids, and a client that sends one gets an error."""
    async with serving(container_of(Climb()), {"sessions": {"resumable": "off"}}) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(call("climb", handshake=True, token=1)) as stream:
            assert [event.id for event in await stream.rest()] == [None] * 4
        async with client.hearing() as stream:
            server.host.registry.register(SchemaTool("fresh", {}, print))
            assert (await stream.take()).id is None
        async with client.listen(**{"Last-Event-ID": "0123456789abcdef.1"}) as response:
            assert response.status_code == 400


async def test_the_stream_of_a_call_is_kept_alive(http: httpx2.AsyncClient) -> None:
    """An idle stream of a call gets comments."""
    probe = Probe(progress=True)
    async with serving(container_of(probe), {"http": {"keep_alive_seconds": 0.02}}) as server:
        client = Client(http, server.url)
        await client.begin()
        headers = {**JSON_HEADERS, **client.headers}
        body = call("probe", handshake=True, token=1)
        async with http.stream("POST", server.url, content=body, headers=headers) as response:
            async for line in response.aiter_lines():
                if line == ": keep-alive":
                    break
            probe.release.set()


async def test_the_end_of_the_server(http: httpx2.AsyncClient) -> None:
    """On shutdown, GET streams end, new ones are rejected, and the stream of a call ends with it."""
    probe = Probe(progress=True)
    async with serving(container_of(probe)) as server:
        client, another = Client(http, server.url), Client(http, server.url)
        await client.begin()
        await another.begin("2025-06-18")
        async with (
            client.calling(call("probe", handshake=True, token=1)) as running,
            client.hearing() as news,
            another.hearing() as older,
        ):
            last = await running.take()
            await news.take()
            server.app.sessions.end_streams()
            assert [event.retry for event in await news.rest()] == [1000]
            assert await older.rest() == []
            async with client.listen() as refused:
                assert refused.status_code == 503
            async with client.hearing(last.id) as resumed:
                probe.release.set()
                assert (await resumed.rest())[-1].message["result"]["content"][0]["text"] == "done"


async def test_the_end_of_the_server_for_listeners(http: httpx2.AsyncClient) -> None:
    """On shutdown, subscriptions without a session end with a result."""
    async with serving(container_of(Echo())) as server:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": META}
        body, headers = message("subscriptions/listen", wanted, id="me"), mirrored("subscriptions/listen")
        async with http.stream("POST", server.url, content=body, headers=headers) as response:
            stream = EventReader(response)
            assert (await stream.take()).message["method"] == "notifications/subscriptions/acknowledged"
            server.app.sessions.end_streams()
            assert [event.message["id"] for event in await stream.rest()] == ["me"]


def notice(number: int) -> bytes:
    return notification("notifications/progress", {"progress": number})


RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{}}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


async def test_only_notifications_may_be_lost() -> None:
    """Only notifications may be dropped: not responses, requests, or the first and last message of a subscription."""
    assert is_droppable(notice(1))
    assert is_droppable(notification("notifications/tools/list_changed"))
    assert not is_droppable(notification("notifications/subscriptions/acknowledged", {}))
    assert not is_droppable(notification("notifications/cancelled", {"requestId": 1}))
    assert not is_droppable(RESPONSE)
    assert not is_droppable(REQUEST)
    assert not is_droppable(b'{"jsonrpc":"2.0","id":1,"method":"notifications/odd"}')
    assert not is_droppable(b"[" + notice(1) + b"]")


async def test_a_backlog_drops_the_oldest_that_may_be_lost() -> None:
    """A full queue drops the oldest notification, and keeps other messages in order."""
    backlog: Backlog[str] = Backlog()
    backlog.put("first")
    for number in range(MAX_WAITING + 5):
        backlog.put(str(number), droppable_bytes=1)
    backlog.put("last")
    waiting = [backlog.take() for _ in range(len(backlog))]
    assert waiting == ["first", *(str(number) for number in range(6, MAX_WAITING + 5)), "last"]


async def test_a_full_queue_drops_only_notifications() -> None:
    """A queue full of other messages drops new notifications, but no other messages."""
    backlog: Backlog[int] = Backlog()
    for number in range(MAX_WAITING):
        backlog.put(number)
    backlog.put(-1, droppable_bytes=1)
    backlog.put(MAX_WAITING)
    assert [backlog.take() for _ in range(len(backlog))] == list(range(MAX_WAITING + 1))


async def test_a_backlog_counts_the_bytes_of_notifications() -> None:
    """Notifications that wait have a limited size in total; a larger one may wait alone. Other messages are kept."""
    backlog: Backlog[int] = Backlog()
    backlog.put(-1)
    for number in range(10):
        backlog.put(number, droppable_bytes=MAX_WAITING_BYTES // 4)
    assert [backlog.take() for _ in range(len(backlog))] == [-1, 6, 7, 8, 9]
    backlog.put(1, droppable_bytes=10)
    backlog.put(2, droppable_bytes=2 * MAX_WAITING_BYTES)
    assert len(backlog) == 1
    backlog.put(3, droppable_bytes=10)
    assert [backlog.take() for _ in range(len(backlog))] == [3]


async def test_a_slow_reader_of_large_notifications_uses_little_memory() -> None:
    """The bytes that wait for a slow reader are limited, and the replies are kept."""
    reader = SlowReader()
    stream = EventStream(reader.send, [], KeepAlive(PATIENCE_SECONDS))
    stream.start()
    for number in range(100):
        stream.put(notification("notifications/message", {"data": "x" * 100_000, "number": number}))
    stream.put(RESPONSE)
    stream.end()
    reader.ready.set()
    await stream.finished()
    *notices, last = reader.messages
    assert last == json.loads(RESPONSE)
    assert [sent["params"]["number"] for sent in notices] == list(range(100 - len(notices), 100))
    assert 5 < len(notices) <= MAX_WAITING_BYTES // 100_000 + 1


class SlowReader:
    """A connection that reads nothing until it is released."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.sent: list[bytes] = []
        self.complete = False

    async def send(self, event: Any) -> None:
        await self.ready.wait()
        if event["type"] == "http.response.body":
            self.sent.append(event["body"])
            self.complete = not event.get("more_body", False)

    @property
    def messages(self) -> list[Any]:
        return [json.loads(frame.partition(b"data: ")[2]) for frame in self.sent if frame]


async def test_a_slow_reader_loses_notifications_only() -> None:
    """A slow reader misses only the oldest notifications."""
    reader = SlowReader()
    stream = EventStream(reader.send, [], KeepAlive(PATIENCE_SECONDS))
    stream.start()
    stream.put(REQUEST)
    for number in range(3 * MAX_WAITING):
        stream.put(notice(number))
    stream.put(RESPONSE)
    stream.end()
    stream.put(notice(-1))
    reader.ready.set()
    await stream.finished()
    first, *notices, last = reader.messages
    assert (first, last) == (json.loads(REQUEST), json.loads(RESPONSE))
    numbers = [sent["params"]["progress"] for sent in notices]
    assert numbers == list(range(3 * MAX_WAITING - len(numbers), 3 * MAX_WAITING))
    assert MAX_WAITING - 2 <= len(numbers) <= MAX_WAITING
    assert reader.complete


async def test_events_that_wait_are_limited_in_total() -> None:
    """If too many bytes wait for clients that read nothing, the streams that have waited longest end."""
    keep_alive = KeepAlive(0.04, max_unread_bytes=1_000_000)
    readers = [SlowReader() for _ in range(4)]
    streams = [EventStream(reader.send, [], keep_alive) for reader in readers]
    for stream in streams:
        stream.start()
        stream.put(notification("notifications/message", {"data": "x" * 499_000}))
    await until(lambda: not streams[1].open)
    assert [(stream.open, stream.waiting) for stream in streams] == [(False, 0), (False, 0), (True, 1), (True, 1)]
    for reader, stream in zip(readers, streams, strict=True):
        reader.ready.set()
        stream.end()
        await stream.finished()
    assert [len(reader.messages) for reader in readers] == [0, 0, 1, 1]


async def test_an_abandoned_stream_ends_at_once() -> None:
    """An abandoned stream writes none of its queued messages."""
    reader = SlowReader()
    stream = EventStream(reader.send, [], KeepAlive(PATIENCE_SECONDS))
    stream.start()
    stream.put(RESPONSE)
    stream.abandon()
    reader.ready.set()
    await stream.finished()
    assert (reader.sent, reader.complete, stream.open) == ([b""], True, False)


async def test_a_failed_send_ends_the_stream() -> None:
    """If sending raises, as ASGI allows, the stream ends without an error."""
    tried: list[str] = []

    async def send(event: Any) -> None:
        tried.append(event["type"])
        raise ConnectionResetError

    stream = EventStream(send, [], KeepAlive(PATIENCE_SECONDS))
    stream.start()
    stream.put(RESPONSE)
    await stream.finished()
    assert (tried, stream.open) == (["http.response.start"], False)


def stream_tasks() -> set[str]:
    names = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}  # type: ignore[union-attr]
    return names & {"EventStream._write", "SessionStream._work", "until_client_leaves", "Session.forget"}


async def test_an_idle_subscription_has_no_task_of_its_own(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """An idle stream is neither written by a task nor watched by one, and still ends when its client leaves."""
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": META}
    body, headers = message("subscriptions/listen", wanted), mirrored("subscriptions/listen")
    async with http.stream("POST", server.url, content=body, headers=headers) as response:
        await EventReader(response).take()
        await until(lambda: not stream_tasks())
        assert server.host.handler.subscriptions.listeners == 1
    await until(lambda: server.host.handler.subscriptions.listeners == 0)


async def test_ended_streams_leave_no_task(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Ended streams leave no task behind."""
    client = Client(http, server.url)
    await client.begin()
    async with client.hearing() as stream:
        await stream.take()
        assert stream_tasks() == {"until_client_leaves"}
        async with client.calling(call("climb", handshake=True, token=1)) as running:
            await running.rest()
    await client.end()
    await until(lambda: not stream_tasks())


async def test_idle_streams_share_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments of many idle streams take no timer per stream, and an idle stream has no task."""
    loop, timers, sent = asyncio.get_running_loop(), 0, 0
    call_at, tasks = loop.call_at, asyncio.all_tasks()

    def counted(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
        nonlocal timers
        timers += 1
        return call_at(*arguments, **options)

    async def send(event: Any) -> None:
        nonlocal sent
        sent += event.get("body") == KEEP_ALIVE

    monkeypatch.setattr(loop, "call_at", counted)
    keep_alive = KeepAlive(0.04)
    streams = [EventStream(send, [], keep_alive) for _ in range(500)]
    for stream in streams:
        stream.start()
    await until(lambda: sent >= 3 * len(streams))
    assert timers < len(streams)
    assert asyncio.all_tasks() <= tasks
    for stream in streams:
        stream.end()
        await stream.finished()
    assert keep_alive._members == {}
