"""Session and event stores in a directory, and messages between processes that share it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from dependency_injector import containers, providers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from axolotl_core import ConfigurationError, ToolContext, tool
from axolotl_core.protocol.identity import Implementation
from axolotl_core.sessions import KnownSession, SessionChange, SessionRecord
from axolotl_server import ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.stores.memory_events import MemoryEventStore
from axolotl_server.stores.sqlite_sessions import SqliteEventStore, SqliteSessionStore
from tests.support.peers.session_client import Client
from tests.support.peers.wire import call, message
from tests.support.servers.serving import PATIENCE_SECONDS, serving

pytestmark = pytest.mark.slow

_names = count()

RECORD = SessionRecord("owner", "2025-11-25", Implementation("client", "1"), {"elicitation": {}})


class Process:
    """A process that shares sessions: its store and the messages it has received."""

    def __init__(self, store: SqliteSessionStore) -> None:
        self.store = store
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        store.open(self.heard.put_nowait, lambda: None)

    async def hear(self) -> bytes:
        """Wait for the next message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.heard.get()


@asynccontextmanager
async def process(directory: Path, **options: Any) -> AsyncIterator[Process]:
    """Start sharing sessions."""
    store = SqliteSessionStore(directory, **{"maximum": 100, "idle_seconds": 600.0, **options})
    try:
        yield Process(store)
    finally:
        await store.close()


@asynccontextmanager
async def two(directory: Path, **options: Any) -> AsyncIterator[tuple[SqliteSessionStore, SqliteSessionStore]]:
    """Start sharing sessions in two processes."""
    async with process(directory, **options) as one, process(directory, **options) as other:
        yield one.store, other.store


async def test_a_session_is_found_by_the_others(tmp_path: Path) -> None:
    """A process finds the full session of another process, even after that has exited, but no state it already has."""
    async with process(tmp_path) as other:
        async with process(tmp_path) as one:
            assert await one.store.begin("s", RECORD)
        assert await other.store.find("s", 0) == KnownSession(1, RECORD)
        assert await other.store.find("s", 1) == KnownSession(1, None)
        assert await other.store.find("another", 0) is None


async def test_ends_and_maximum(tmp_path: Path) -> None:
    """The maximum counts the sessions of all processes; an ended session frees its place and cannot be used."""
    async with two(tmp_path, maximum=2) as (one, other):
        assert [await one.begin("a", RECORD), await other.begin("b", RECORD)] == [True, True]
        assert not await one.begin("c", RECORD)
        await other.end("a")
        assert await one.find("a", 1) is None
        assert await one.change("a", SessionChange(initialized=True)) is None
        assert await one.hold(["a", "b"]) == {"b"}
        assert await one.begin("c", RECORD)


async def test_idle_sessions_end(tmp_path: Path) -> None:
    """A session lives as long as it is found or held at intervals."""
    async with two(tmp_path, idle_seconds=0.2) as (one, other):
        await one.begin("s", RECORD)
        loop = asyncio.get_running_loop()
        until = loop.time() + 0.5
        while loop.time() < until:
            assert await other.find("s", 1) == KnownSession(1, None)
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.sleep(0.3)  # sleeps: the test is about elapsed time
        assert await one.hold(["s"]) == frozenset()


async def test_messages_reach_the_other_holders(tmp_path: Path) -> None:
    """A message reaches every other process that holds the session, but not its sender."""
    async with process(tmp_path) as one, process(tmp_path) as other, process(tmp_path) as stranger:
        await one.store.begin("s", RECORD)
        assert not await one.store.send("s", b"alone")
        await other.store.find("s", 0)
        assert await one.store.send("s", b"\x00\xff to the other")
        assert await other.store.send("s", b"to the one")
        await stranger.store.broadcast(b"to all")
        assert [await one.hear(), await one.hear()] == [b"to the one", b"to all"]
        assert [await other.hear(), await other.hear()] == [b"\x00\xff to the other", b"to all"]
        assert stranger.heard.empty()


def _sockets(directory: Path) -> int:
    return sum(path.is_socket() for path in directory.iterdir())


async def test_sockets_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """The socket of a dead process is removed when a message cannot be delivered."""
    async with process(tmp_path) as one:
        await one.store.begin("s", RECORD)
        dead = Process(SqliteSessionStore(tmp_path, maximum=1, idle_seconds=1))
        await dead.store.find("s", 0)
        assert dead.store._socket is not None
        asyncio.get_running_loop().remove_reader(dead.store._socket)
        dead.store._socket.close()
        assert not await one.store.send("s", b"hello?")
        assert _sockets(tmp_path) == 1
        dead.store._database.close()


async def test_many_messages(tmp_path: Path) -> None:
    """A burst larger than a socket buffer arrives completely and in order."""
    async with process(tmp_path) as one, process(tmp_path) as other:
        await one.store.begin("s", RECORD)
        await other.store.find("s", 0)
        sending = asyncio.gather(*(one.store.send("s", b"%d" % number) for number in range(20)))
        assert {await other.hear() for _ in range(20)} == {b"%d" % number for number in range(20)}
        await sending


_CHANGES = st.builds(
    SessionChange,
    initialized=st.none() | st.booleans(),
    log_level=st.none() | st.sampled_from(["debug", "error"]),
    notification_stream=st.none() | st.sampled_from(["x", "y"]),
    subscribed=st.frozensets(st.text(max_size=5), max_size=3),
    unsubscribed=st.frozensets(st.text(max_size=5), max_size=3),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), _CHANGES), max_size=8))
async def test_any_changes(tmp_path: Path, changes: list[tuple[bool, SessionChange]]) -> None:
    """After any changes by two processes, both find the combined state."""
    async with two(tmp_path, maximum=10_000) as (one, other):
        name = f"session {next(_names)}"
        await one.begin(name, RECORD)
        expected = RECORD
        for mine, change in changes:
            await (one if mine else other).change(name, change)
            expected = msgspec.structs.replace(
                expected,
                initialized=expected.initialized if change.initialized is None else change.initialized,
                log_level=change.log_level or expected.log_level,
                notification_stream=change.notification_stream or expected.notification_stream,
                subscriptions=(expected.subscriptions | change.subscribed) - change.unsubscribed,
            )
        found = KnownSession(1 + len(changes), expected)
        assert await one.find(name, 0) == await other.find(name, 0) == found


_STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "forget", "forget_all"]), st.sampled_from(["a", "b"]), st.binary(max_size=30)),
    max_size=15,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STEPS)
async def test_events_are_stored_as_in_memory(tmp_path: Path, steps: list[tuple[str, str, bytes]]) -> None:
    """After any operations, the file store returns the same events as the store in memory."""
    kept = SqliteEventStore(tmp_path / "events.sqlite", max_events=5, max_bytes=60)
    model, session = MemoryEventStore(5, 60), f"session {next(_names)}"
    try:
        for step, stream, data in steps:
            if step == "append":
                assert await kept.append(session, stream, data) == await model.append(session, stream, data)
            else:
                for store in (kept, model):
                    await store.forget(session, stream if step == "forget" else None)
        for stream in ("a", "b"):
            for event_id in ("0", "1", "3", "7", "x", "²"):
                assert await kept.after(session, stream, event_id) == await model.after(session, stream, event_id)
    finally:
        await kept.close()


class Name(BaseModel):
    """A name."""

    name: str


@tool
async def ask(context: ToolContext) -> str:
    """Ask once."""
    return (await context.ask(Name, "Who?")).name


class Container(containers.DeclarativeContainer):
    """A tool that asks."""

    tools = providers.List(providers.Object(ask))


async def test_a_session_outlives_its_process(tmp_path: Path) -> None:
    """A client continues its session at another server that shares the directory, even after the first has exited."""
    shared = {"sessions": {"directory": str(tmp_path / "shared")}}
    async with serving(Container(), shared) as later, httpx2.AsyncClient() as http:
        async with serving(Container(), shared) as earlier:
            client = Client(http, earlier.url)
            await client.begin()
        client.url = later.url
        assert (await client.post(message("tools/list"))).json()["result"]["tools"][0]["name"] == "ask"
        assert (await client.end()).status_code == 204
        assert (await client.post(message("tools/list"))).status_code == 404


async def test_an_answer_reaches_the_asking_process(tmp_path: Path) -> None:
    """A question of one process is answered by a request that reaches another process."""
    shared = {"sessions": {"directory": str(tmp_path / "shared")}}
    async with serving(Container(), shared) as one, serving(Container(), shared) as other, httpx2.AsyncClient() as http:
        client = Client(http, one.url)
        await client.begin(elicitation={"form": {}})
        async with client.calling(call("ask", handshake=True)) as events:
            assert (await events.take()).is_priming
            asked = (await events.take()).message
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"name": "Ann"}}}
            client.url = other.url
            assert (await client.post(msgspec.json.encode(answer))).status_code == 202
            assert (await events.take()).message["result"]["content"][0]["text"] == "Ann"


async def test_an_invalid_directory(tmp_path: Path) -> None:
    """A directory that cannot be created is a configuration error that names the setting."""
    (tmp_path / "file").touch()
    async with ServerHost(Container(), flags={"sessions": {"directory": str(tmp_path / "file" / "here")}}) as host:
        with pytest.raises(ConfigurationError, match=r"sessions\.directory: .* cannot be used"):
            make_app(host)
