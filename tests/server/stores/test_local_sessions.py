"""Session stores in a directory: dead processes, and servers that share it."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx2
import msgspec
import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError
from axolotl_core.sessions import SessionStoreError
from axolotl_server import ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.stores import sqlite_sessions
from axolotl_server.stores.sqlite_events import SqliteEventStore
from axolotl_server.stores.sqlite_sessions import SqliteSessionStore
from tests.support.peers.session_client import Client
from tests.support.peers.wire import call, message
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until
from tests.support.stores.session_stores import RECORD, Place, Process
from tests.support.tools import Echo, ask_name, container_of

pytestmark = pytest.mark.slow


def _sockets(directory: Path) -> int:
    return sum(path.is_socket() for path in directory.iterdir())


async def test_sockets_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """The socket of a dead process is removed when a message cannot be delivered."""
    async with Place(tmp_path).process() as one:
        await one.store.begin("s", RECORD)
        dead = SqliteSessionStore(tmp_path, maximum=1, idle_seconds=1)
        Process(dead)
        await dead.find("s", 0)
        assert dead._socket is not None
        asyncio.get_running_loop().remove_reader(dead._socket)
        dead._socket.close()
        assert not await one.store.send("s", b"hello?")
        assert _sockets(tmp_path) == 1
        dead._database.close()


async def test_a_clock_that_is_set_ends_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions outlive a change of the system clock, and a restart of the machine, which begins a new clock."""
    async with Place(tmp_path).process(idle_seconds=60.0) as one:
        await one.store.begin("s", RECORD)
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + 3600)
        assert await one.store.find("s", 0) is not None
    began = time.monotonic() - 10.0
    monkeypatch.setattr(sqlite_sessions, "time", SimpleNamespace(monotonic=lambda: time.monotonic() - began))
    async with Place(tmp_path).process(idle_seconds=60.0) as one:
        assert await one.store.find("s", 0) is not None
        began -= 61.0
        assert await one.store.find("s", 0) is None


def _sessions_with_events(directory: Path) -> int:
    query = "select count(*) from (select session from events union select session from logs)"
    with closing(sqlite3.connect(directory / "events.sqlite")) as database:
        return int(database.execute(query).fetchone()[0])


async def test_the_events_of_a_session_end_with_it(
    tmp_path: Path, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events end with their session: deleted by its client, idle for too long, or found at a start without it."""
    began = 0.0
    monkeypatch.setattr(sqlite_sessions, "time", SimpleNamespace(monotonic=lambda: time.monotonic() - began))
    settings = {"sessions": {"directory": str(tmp_path), "resumable": "replies", "idle_seconds": 60.0}}
    async with serving(container_of(Echo()), settings) as server:
        ended, idle, last = (Client(http, server.url) for _ in range(3))
        for client in (ended, idle):
            await client.begin()
            async with client.calling(call("echo", {"text": "x"}, handshake=True)) as stream:
                assert len(await stream.rest()) == 2
        assert _sessions_with_events(tmp_path) == 2
        await ended.end()
        await until(lambda: _sessions_with_events(tmp_path) == 1)
        began -= 61.0
        await last.begin()
        await until(lambda: _sessions_with_events(tmp_path) == 0)
        async with last.calling(call("echo", {"text": "x"}, handshake=True)) as stream:
            await stream.rest()
    with closing(sqlite3.connect(tmp_path / "sessions.sqlite")) as database:
        database.execute("delete from sessions")
        database.commit()
    assert _sessions_with_events(tmp_path) == 1
    async with serving(container_of(Echo()), settings):
        assert _sessions_with_events(tmp_path) == 0


@pytest.mark.parametrize("size", [0, 100, 5_000, 90_000])
async def test_the_file_of_events_is_bounded(tmp_path: Path, size: int) -> None:
    """The file of events grows beyond its limit by one message at most, whatever its size, and the newest is kept."""
    limits = {"max_events": 1_000, "max_bytes": 1_000_000, "max_file_bytes": 300_000}
    path = tmp_path / "events.sqlite"
    store = SqliteEventStore(path, **limits)
    for number in range(6_000 if size < 1_000 else 200):
        session = f"session {number % 5}"
        newest = await store.append(session, "a", b"x" * size)
    assert await store.after(session, "a", newest) == []
    await store.close()
    assert 180_000 < path.stat().st_size < 300_000 + 2 * 4096 + size


async def test_events_that_never_fit(tmp_path: Path) -> None:
    """With a limit below the size of an empty file, no event is kept, and nothing fails."""
    store = SqliteEventStore(tmp_path / "events.sqlite", max_events=10, max_bytes=100, max_file_bytes=1)
    assert [await store.append("session", "a", b"x") for _ in range(2)] == ["1", "2"]
    assert await store.after("session", "a", "1") is None
    await store.close()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, as another process that writes to it does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("begin immediate")
        yield
        database.execute("rollback")


async def test_requests_wait_for_the_lock_without_blocking_others(
    tmp_path: Path, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process holds the lock, requests in sessions wait for it, and the loop serves all others."""
    monkeypatch.setattr("axolotl_server.sessions.sessions.STORE_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    settings = {"sessions": {"directory": str(tmp_path)}}
    async with serving(container_of(Echo()), settings) as server:
        client, stateless = Client(http, server.url), Client(http, server.url)
        await client.begin()
        with _locked(tmp_path / "sessions.sqlite"):
            waiting = asyncio.create_task(client.post(message("tools/list")))
            for _ in range(5):
                reply = await stateless.request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
                assert reply.status_code == 200
            assert not waiting.done()
        assert (await waiting).status_code == 200


async def test_a_lock_that_is_held_for_too_long(
    tmp_path: Path, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `sessions.store_timeout_seconds`, a request in a session gets 503; afterwards, the session continues."""
    monkeypatch.setattr("axolotl_server.sessions.sessions.STORE_TIMEOUT_SECONDS", 0.01)
    settings = {"sessions": {"directory": str(tmp_path)}}
    async with serving(container_of(Echo()), settings) as server:
        client = Client(http, server.url)
        await client.begin()
        with _locked(tmp_path / "sessions.sqlite"):
            reply = await client.post(message("tools/list"))
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        assert (await client.post(message("tools/list"))).status_code == 200


async def test_events_wait_for_the_lock_without_blocking_others(tmp_path: Path) -> None:
    """While another process holds the lock, events can be read, and those to be written wait in the loop."""
    path = tmp_path / "events.sqlite"
    limits = {"max_events": 10, "max_bytes": 1_000, "max_file_bytes": 100_000}
    store = SqliteEventStore(path, **limits, timeout_seconds=PATIENCE_SECONDS)
    first = await store.append("session", "a", b"1")
    with _locked(path):
        writing = [asyncio.create_task(work) for work in (store.append("session", "a", b"2"), store.forget("other"))]
        assert await store.after("session", "a", first) == []
        await asyncio.sleep(0)
        assert not any(work.done() for work in writing)
    await asyncio.gather(*writing)
    events = await store.after("session", "a", first)
    assert [event.message for event in events or ()] == [b"2"]
    await store.close()


async def test_events_that_wait_for_too_long(tmp_path: Path) -> None:
    """Events that cannot be written in time are an error that names the file."""
    path = tmp_path / "events.sqlite"
    limits = {"max_events": 10, "max_bytes": 1_000, "max_file_bytes": 100_000}
    store = SqliteEventStore(path, **limits, timeout_seconds=0.01)
    with _locked(path), pytest.raises(SessionStoreError, match=r"events\.sqlite cannot be used: database is locked"):
        await store.append("session", "a", b"1")
    assert await store.append("session", "a", b"1") == "1"
    await store.close()


class Container(containers.DeclarativeContainer):
    """A tool that asks."""

    tools = providers.List(providers.Object(ask_name))


async def test_a_session_outlives_its_process(tmp_path: Path) -> None:
    """A client continues its session at another server that shares the directory, even after the first has exited."""
    shared = {"sessions": {"directory": str(tmp_path / "shared")}}
    async with serving(Container(), shared) as later, httpx2.AsyncClient() as http:
        async with serving(Container(), shared) as earlier:
            client = Client(http, earlier.url)
            await client.begin()
        client.url = later.url
        assert (await client.post(message("tools/list"))).json()["result"]["tools"][0]["name"] == "ask_name"
        assert (await client.end()).status_code == 200
        assert (await client.post(message("tools/list"))).status_code == 404


async def test_an_answer_reaches_the_asking_process(tmp_path: Path) -> None:
    """A question of one process is answered by a request that reaches another process."""
    shared = {"sessions": {"directory": str(tmp_path / "shared")}}
    async with serving(Container(), shared) as one, serving(Container(), shared) as other, httpx2.AsyncClient() as http:
        client = Client(http, one.url)
        await client.begin(elicitation={"form": {}})
        async with client.calling(call("ask_name", handshake=True)) as events:
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


@pytest.mark.parametrize("mode", [0o777, 0o703, 0o702])
async def test_a_directory_that_others_can_write_to(tmp_path: Path, mode: int) -> None:
    """A directory in which others could replace the files is a configuration error that says what to do."""
    os.chmod(tmp_path, mode)
    async with ServerHost(Container(), flags={"sessions": {"directory": str(tmp_path)}}) as host:
        with pytest.raises(ConfigurationError, match=r"sessions\.directory: every user .* run chmod o-w"):
            make_app(host)


async def test_the_directory_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that belongs to another user is a configuration error."""
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, -1)
    else:
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    async with ServerHost(Container(), flags={"sessions": {"directory": str(tmp_path)}}) as host:
        with pytest.raises(ConfigurationError, match=r"sessions\.directory: .* belongs to another user"):
            make_app(host)


async def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    """The files of sessions and events are private, even in an existing directory and with any umask."""
    (tmp_path / "events.sqlite").touch(mode=0o644)
    before = os.umask(0)
    try:
        os.chmod(tmp_path, 0o755)
        async with serving(Container(), {"sessions": {"directory": str(tmp_path), "resumable": "streams"}}) as server:
            async with httpx2.AsyncClient() as http:
                await Client(http, server.url).begin()
            modes = {one.name: one.stat().st_mode & 0o777 for one in os.scandir(tmp_path) if one.is_file()}
    finally:
        os.umask(before)
    assert "events.sqlite" in modes
    assert set(modes.values()) == {0o600}
