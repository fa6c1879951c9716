"""What the console tells its page: what runs now, who calls, and how features are called."""

import asyncio
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from dependency_injector import containers, providers

from axolotl_core import prompt, tool
from axolotl_server.hosting.container_loading import load_container
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import call, mirrored
from tests.support.servers.console_server import PAGE, serving_console


class Gate:
    """Lets calls end."""

    opened: asyncio.Event


@tool
async def hold() -> str:
    """Wait until the gate opens."""
    await Gate.opened.wait()
    return "done"


@prompt
def visit(country: str, season: Literal["spring", "autumn"] | None = None, guided: bool = False) -> str:
    """Plan a visit."""
    return country


@visit.completes("country")
def countries(value: str) -> list[str]:
    """Suggest countries."""
    return [value]


class Container(containers.DeclarativeContainer):
    """A tool that waits, and a prompt with choices."""

    tools = providers.List(providers.Object(hold))
    prompts = providers.List(providers.Object(visit))


async def running(reader: EventReader) -> int:
    """Return the number of running calls in the next message."""
    count = (await reader.take()).message["activity"]["running"]
    assert isinstance(count, int)
    return count


async def test_running_calls_are_pushed() -> None:
    """The number of running calls comes with the message that lists a call, when it begins and when it ends."""
    Gate.opened = asyncio.Event()
    async with (
        serving_console(Container()) as server,
        httpx2.AsyncClient() as client,
        httpx2.AsyncClient() as other,
        server.listening(client) as reader,
    ):
        assert await running(reader) == 0
        waiting = asyncio.ensure_future(
            other.post(f"{server.url}/mcp", content=call("hold"), headers=mirrored(name="hold"))
        )
        assert await running(reader) == 1
        Gate.opened.set()
        await waiting
        assert await running(reader) == 0


async def test_changes_without_calls_are_pushed() -> None:
    """A change that no call causes, such as a session that ends, is pushed too."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as http:
        client = Client(http, f"{server.url}/mcp")
        await client.begin()
        async with server.listening(http) as reader:
            assert (await reader.take()).message["activity"]["session_count"] == 1
            [session] = server.app.sessions.all()
            server.app.sessions.end(session)
            message = (await reader.take()).message
            assert (message["type"], message["activity"]["session_count"]) == ("activity", 0)


async def test_the_listed_sessions_are_limited() -> None:
    """Only the sessions that were used last are described, with the number of all."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as http:
        for _ in range(53):
            await Client(http, f"{server.url}/mcp").begin()
        async with server.listening(http) as reader:
            activity = (await reader.take()).message["activity"]
    assert (activity["session_count"], len(activity["sessions"])) == (53, 50)


async def test_prompt_arguments() -> None:
    """The state says which prompt arguments have certain values, and which are completed by code."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        state = (await client.get(f"{server.url}/console/state", headers=PAGE)).json()
    described = state["prompts"]["visit"]
    assert described["choices"] == {"season": ["spring", "autumn"], "guided": ["true", "false"]}
    assert described["completed"] == ["country"]
    assert state["principal"] == {"subject": "anonymous", "tenant": None, "scopes": [], "roles": []}


@pytest.mark.parametrize(
    ("target", "module", "attribute", "is_called"),
    [
        ("{dir}/own.py", "own", "Container", True),
        ("{dir}/own.py:make", "own", "make", True),
        ("{dir}/own.py:made", "own", "made", False),
    ],
)
async def test_the_target(tmp_path: Path, target: str, module: str, attribute: str, is_called: bool) -> None:
    """The state says how a test imports the container."""
    (tmp_path / "own.py").write_text(SOURCE)
    named = target.format(dir=tmp_path)
    async with serving_console(load_container(named)) as server, httpx2.AsyncClient() as client:
        server.host.assembly.target = named
        state = (await client.get(f"{server.url}/console/state", headers=PAGE)).json()
    assert state["target"] == {"name": named, "module": module, "attribute": attribute, "is_called": is_called}


SOURCE = """
from dependency_injector import containers, providers


class Container(containers.DeclarativeContainer):
    tools = providers.List()


def make():
    return Container()


made = Container()
"""
