"""Questions of requested tasks on the stream that an HTTP client listens on."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.task_hosts import serve_tasks
from tests.support.peers.task_peers import RELATED, STATUS, Herald
from tests.support.peers.task_results import Waiting, begin, requests_of
from tests.support.peers.wire import message
from tests.support.scenarios.asking_tasks import ASKED, ASKING_TOOLS, accepted, text_of
from tests.support.servers.serving import HttpServer, serving, until
from tests.support.tools import container_of


@pytest.fixture(params=["memory", "shared"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Settings for sessions of one process, or of several."""
    return {} if request.param == "memory" else {"sessions": {"directory": str(tmp_path / "sessions")}}


@pytest_asyncio.fixture
async def server(settings: dict[str, Any]) -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    async with serving(container_of(*ASKING_TOOLS), settings) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session that supports questions."""
    client = Client(http, server.url)
    await client.begin(elicitation={})
    return client


async def poll(client: Client, task_id: str) -> str:
    """Ask for the state of a task."""
    reply = await client.post(message("tasks/get", {"taskId": task_id}))
    return str(reply.json()["result"]["status"])


async def hear(stream: EventReader, *methods: str) -> list[Mapping[str, Any]]:
    """Hear messages with these methods, in any order."""
    heard = [(await stream.take()).message for _ in methods]
    assert sorted(said["method"] for said in heard) == sorted(methods)
    return heard


async def respond(client: Client, question: Mapping[str, Any]) -> None:
    body = {"jsonrpc": "2.0", "id": question["id"], "result": accepted()}
    assert (await client.post(json.dumps(body).encode())).status_code == 202


async def test_a_client_that_only_polls_is_asked(client: Client) -> None:
    """A client that never waits for the result gets the question once, on its open stream, and can answer it."""
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        task_id = await begin(client, "order")
        _, question = sorted(await hear(stream, STATUS, ASKED), key=lambda said: "id" in said)
        assert question["params"]["_meta"] == {RELATED: {"taskId": task_id}}
        for _ in range(3):
            assert await poll(client, task_id) == "input_required"
        await respond(client, question)
        states = [said["params"]["status"] for said in await hear(stream, STATUS, STATUS)]
    assert states == ["working", "completed"]
    assert await poll(client, task_id) == "completed"


async def test_waiting_does_not_repeat_a_question(server: HttpServer, client: Client) -> None:
    """A request for the result does not get a question that the open stream has carried."""
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        task_id = await begin(client, "order")
        _, question = sorted(await hear(stream, STATUS, ASKED), key=lambda said: "id" in said)
        waiting = Waiting(client, task_id)
        await until(lambda: 7 in requests_of(server))
        await respond(client, question)
        (reply,) = await waiting.rest()
    assert text_of(reply) == "ordered 3"


async def test_a_stream_opened_later_gets_the_question(client: Client) -> None:
    """A question that nobody could hear is sent when a client with an open stream asks for the state of the task."""
    task_id = await begin(client, "order")
    while await poll(client, task_id) != "input_required":
        pass
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        assert await poll(client, task_id) == "input_required"
        (question,) = await hear(stream, ASKED)
        await respond(client, question)
        await hear(stream, STATUS, STATUS)


async def test_a_question_on_a_lost_stream_is_sent_to_who_waits(server: HttpServer, client: Client) -> None:
    """If the stream is lost, a request for the result gets the question, with the same ID."""
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        task_id = await begin(client, "order")
        _, asked = sorted(await hear(stream, STATUS, ASKED), key=lambda said: "id" in said)
    await until(lambda: all(session.listening_stream is None for session in server.app.sessions.all()))
    waiting = Waiting(client, task_id)
    question = await waiting.next()
    assert question == asked
    await respond(client, question)
    assert [text_of(reply) for reply in await waiting.rest()] == ["ordered 3"]


async def test_stored_tasks_in_shared_sessions(http: httpx2.AsyncClient, tmp_path: Path) -> None:
    """If another process may ask the same question, it is sent only to a request that waits for the result."""
    shared = {"sessions": {"directory": str(tmp_path / "sessions")}, "tasks": {"url": f"sqlite:///{tmp_path}/t.db"}}
    async with serving(container_of(*ASKING_TOOLS), shared) as server:
        await serve_tasks(server.host, works=True)
        client = Client(http, server.url)
        await client.begin(elicitation={})
        async with client.hearing() as stream:
            assert (await stream.take()).is_priming
            task_id = await begin(client, "order")
            await hear(stream, STATUS)
            assert await poll(client, task_id) == "input_required"
            waiting = Waiting(client, task_id)
            await respond(client, await waiting.next())
            assert [text_of(reply) for reply in await waiting.rest()] == ["ordered 3"]
            await hear(stream, STATUS, STATUS)


async def test_messages_go_to_the_process_that_the_client_listens_to(http: httpx2.AsyncClient, tmp_path: Path) -> None:
    """A client that began a task in one process, and waits for it in another, gets all messages there."""
    shared = {"sessions": {"directory": str(tmp_path / "sessions")}, "tasks": {"url": f"sqlite:///{tmp_path}/t.db"}}
    herald = Herald("herald")
    async with (
        serving(container_of(herald), shared) as first,
        serving(container_of(Herald("herald")), shared) as second,
    ):
        await serve_tasks(first.host, works=True)
        await serve_tasks(second.host, works=False)
        client = Client(http, first.url)
        await client.begin()
        elsewhere = Client(http, second.url)
        elsewhere.headers = client.headers
        task_id = await begin(client, "herald", _meta={"progressToken": 5})
        await herald.started.wait()
        waiting = Waiting(elsewhere, task_id)
        await until(lambda: 7 in requests_of(second))
        herald.release.set()
        *messages, reply = await waiting.rest()
    assert [one["params"]["progress"] for one in messages if one["method"] == "notifications/progress"] == [1, 2]
    assert text_of(reply) == "done"
