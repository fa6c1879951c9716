"""Questions over HTTP: streams, answers and sessions."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.support.peers.memory_peer import ABLE, ACCEPTED, container_with, text_of
from tests.support.peers.session_client import Client
from tests.support.peers.wire import call
from tests.support.servers.serving import HttpServer, serving, until
from tests.support.tools import ask_name

VERSION = "2025-06-18"


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    """A server with a tool that asks."""
    async with serving(container_with((ask_name,))) as running:
        yield running


async def test_a_question_leaves_on_the_stream_of_its_call(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A question is sent on the stream of its call, and answered with a separate request."""
    client = Client(http, server.url)
    await client.begin(VERSION, **ABLE)
    async with client.hearing() as news:
        async with client.calling(call("ask_name", handshake=True)) as stream:
            question = (await stream.take()).message
            assert question["method"] == "elicitation/create"
            assert await client.answer(question, ACCEPTED) == 202
            assert text_of((await stream.take()).message) == "Ann"
            assert await stream.rest() == []
        await client.end()
        assert await news.rest() == []


async def test_another_session_cannot_answer(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """An answer in another session is accepted and dropped."""
    mine, theirs = Client(http, server.url), Client(http, server.url)
    await mine.begin(VERSION, **ABLE)
    await theirs.begin(VERSION, **ABLE)
    async with mine.calling(call("ask_name", handshake=True)) as stream:
        question = (await stream.take()).message
        assert await theirs.answer(question, {"action": "decline"}) == 202
        nobody = Client(http, server.url)
        assert await nobody.answer(question, {"action": "decline"}) == 400
        assert await mine.answer(question, ACCEPTED) == 202
        assert text_of((await stream.take()).message) == "Ann"


async def test_a_client_without_streams_cannot_be_asked(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A client that does not accept streams cannot be asked, and the model gets an error."""
    client = Client(http, server.url)
    await client.begin(VERSION, **ABLE)
    reply = await client.post(call("ask_name", handshake=True), Accept="application/json")
    assert reply.json()["result"]["isError"]
    assert text_of(reply.json()) == "The client cannot be asked: it does not accept an event stream"
    assert not server.host.handler.inflight


async def test_the_end_of_a_session_ends_its_questions(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Ending a session stops a call that waits for an answer."""
    client = Client(http, server.url)
    await client.begin(VERSION, **ABLE)
    async with client.calling(call("ask_name", handshake=True)) as stream:
        question = (await stream.take()).message
        assert (await client.end()).status_code == 200
        await until(lambda: not server.host.handler.inflight)
        rest = [event.message for event in await stream.rest()]
    assert all("result" not in said for said in rest)
    assert await client.answer(question, ACCEPTED) == 404


async def test_an_answer_survives_the_stream(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A client that lost its connection can answer, and gets the reply when it resumes."""
    client = Client(http, server.url)
    await client.begin("2025-11-25", **ABLE)
    async with client.calling(call("ask_name", handshake=True)) as stream:
        assert (await stream.take()).is_priming
        asked = await stream.take()
    assert await client.answer(asked.message, ACCEPTED) == 202
    await until(lambda: not server.host.handler.inflight)
    async with client.hearing(asked.id) as rest:
        assert text_of((await rest.take()).message) == "Ann"


async def test_many_sessions_are_asked_at_once(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Questions of many sessions have equal ids and their own answers."""
    clients = [Client(http, server.url) for _ in range(10)]
    for client in clients:
        await client.begin(VERSION, **ABLE)
    streams = [client.calling(call("ask_name", handshake=True)) for client in clients]
    readers = [await stream.__aenter__() for stream in streams]
    questions = [(await reader.take()).message for reader in readers]
    assert {question["id"] for question in questions} == {1}
    for number, client in enumerate(clients):
        await client.answer(questions[number], {"action": "accept", "content": {"name": str(number)}})
    for number, reader in enumerate(readers):
        assert text_of((await reader.take()).message) == str(number)
    for stream in streams:
        await stream.__aexit__(None, None, None)
