"""Session and event stores in a directory: dead processes, and servers that share it."""

import asyncio
from itertools import count
from pathlib import Path

import httpx2
import msgspec
import pytest
from dependency_injector import containers, providers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from axolotl_core import ConfigurationError, ToolContext, tool
from axolotl_server import ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.stores.memory_events import MemoryEventStore
from axolotl_server.stores.sqlite_sessions import SqliteEventStore, SqliteSessionStore
from tests.support.peers.session_client import Client
from tests.support.peers.wire import call, message
from tests.support.servers.serving import serving
from tests.support.stores.session_stores import RECORD, Place, Process

pytestmark = pytest.mark.slow

_names = count()


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
