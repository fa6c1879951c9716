"""Sessions whose messages carry different tokens of one subject: each acts only on what it may use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import Context, Principal, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.access import Decision, IAuthorizer, ITokenVerifier
from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.peers.memory_peer import ACCEPTED, text_of
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.task_peers import STATUS, Job
from tests.support.peers.wire import call, message
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving
from tests.support.stores.redis_server import RedisServer
from tests.support.tools import Name, container_of

ASKED = "elicitation/create"
CHANGED = "notifications/tools/list_changed"


class Scoped(ITokenVerifier):
    """Accepts every token of ada: it names her scopes."""

    async def verify(self, token: str) -> Principal:
        return Principal("ada", scopes=frozenset(token.split(".")), claims={"token": token})


class Claiming(IAuthorizer):
    """Decides by a claim."""

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        return Decision("talk" in principal.claims["token"].split("."), "claims")


@tool(scopes=frozenset({"talk"}), task_support="optional")
async def confirm(context: Context) -> str:
    """Ask a question and return the answer."""
    return (await context.ask(Name, "Who?")).name


@pytest.fixture
def job() -> Job:
    """A tool that runs until it is stopped."""
    return Job(scopes=frozenset({"talk"}), progress=True)


@pytest_asyncio.fixture(params=["memory", "directory", "redis", "authorizer", "directory and authorizer"])
async def servers(
    request: pytest.FixtureRequest, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[HttpServer, HttpServer]]:
    """Two processes that share sessions, or one twice, with tools that need a scope."""
    monkeypatch.setattr("axolotl_server.sessions.sessions.STORE_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    settings: dict[str, Any] = {"sessions": {}}
    if "directory" in request.param:
        settings["sessions"]["directory"] = str(tmp_path)
    elif request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis")
        settings["redis"] = {"url": redis.url, "prefix": redis.new_prefix()}
    roles: dict[str, Any] = {"token_verifier": Scoped()}
    if "authorizer" in request.param:
        roles["authorizer"] = Claiming()
    async with AsyncExitStack() as stack:
        count = 2 if "directory" in request.param or "redis" in settings else 1
        started = [
            await stack.enter_async_context(serving(container_of(confirm, job), settings, **roles))
            for _ in range(count)
        ]
        yield started[0], started[-1]


@pytest_asyncio.fixture
async def client(servers: tuple[HttpServer, HttpServer], http: httpx2.AsyncClient) -> Client:
    """A client of the first process, with a token that may use the tools."""
    http.headers["Authorization"] = "Bearer talk.other"
    client = Client(http, servers[0].url)
    await client.begin(elicitation={})
    return client


def same_session(client: Client, server: HttpServer, token: str) -> Client:
    """Return a client of the same session at a process, with another token."""
    other = Client(client.http, server.url)
    other.headers = {**client.headers, "Authorization": f"Bearer {token}"}
    return other


def cancelled(request_id: int) -> bytes:
    return message("notifications/cancelled", {"requestId": request_id}, id=None)


async def take(stream: EventReader, *methods: str) -> list[Any]:
    """Take messages with these methods, in any order."""
    taken: list[Any] = []
    while len(taken) < len(methods):
        event = await stream.take()
        taken += [] if event.is_priming else [event.message]
    assert sorted(said["method"] for said in taken) == sorted(methods)
    return taken


async def begin_task(client: Client) -> str:
    reply = await client.post(message("tools/call", {"name": "confirm", "task": {}}))
    return str(reply.json()["result"]["task"]["taskId"])


async def test_only_who_may_use_a_tool_answers_its_question(
    servers: tuple[HttpServer, HttpServer], client: Client
) -> None:
    """An answer with a token without the scope of the tool is ignored, at every process, like one to no question."""
    async with client.calling(call("confirm", handshake=True)) as stream:
        [question] = await take(stream, ASKED)
        for server in reversed(servers):
            small = same_session(client, server, "other")
            for asked in (question, {"id": 7}):
                assert await small.answer(asked, {"action": "accept", "content": {"name": "Eve"}}) == 202
        more = same_session(client, servers[1], "talk.other.more")
        assert await more.answer(question, ACCEPTED) == 202
        assert text_of((await stream.take()).message) == "Ann"


async def test_only_who_may_use_a_tool_cancels_its_call(
    servers: tuple[HttpServer, HttpServer], client: Client, job: Job
) -> None:
    """A cancellation with a token without the scope of the tool is ignored; one with more scopes is not."""
    async with client.calling(call("confirm", id=3, handshake=True)) as stream:
        [question] = await take(stream, ASKED)
        for server in reversed(servers):
            assert (await same_session(client, server, "other").post(cancelled(3))).status_code == 202
        assert await same_session(client, servers[1], "talk.other").answer(question, ACCEPTED) == 202
        assert text_of((await stream.take()).message) == "Ann"
    async with client.calling(call("job", id=4, token="token", handshake=True)):
        await job.started.wait()
        more = same_session(client, servers[1], "talk.other.more")
        assert (await more.post(cancelled(4))).status_code == 202
        async with asyncio.timeout(PATIENCE_SECONDS):
            await job.cancelled.wait()


@pytest.mark.parametrize("place", [0, 1])
async def test_only_who_may_use_a_tool_hears_its_task(
    servers: tuple[HttpServer, HttpServer], client: Client, place: int
) -> None:
    """A stream that was opened without the scope of the tool carries nothing of its tasks; who waits is asked."""
    async with same_session(client, servers[place], "other").hearing() as listening:
        assert (await listening.take()).is_priming
        task_id = await begin_task(client)
        async with client.calling(message("tasks/result", {"taskId": task_id}, id=7)) as waiting:
            [question] = await take(waiting, ASKED)
            assert await same_session(client, servers[place], "other").answer(question, {"action": "decline"}) == 202
            assert await client.answer(question, ACCEPTED) == 202
            assert text_of((await waiting.take()).message) == "Ann"
        servers[0].host.registry.register(SchemaTool("fresh", {}, print))
        await take(listening, CHANGED)


@pytest.mark.parametrize("place", [0, 1])
async def test_who_may_use_a_tool_hears_its_task(
    servers: tuple[HttpServer, HttpServer], client: Client, place: int
) -> None:
    """A stream that was opened with the scope of the tool carries the states and questions of its tasks.

    An authorizer is not asked for each message: then the scopes must be the same.
    """
    authorization = servers[0].host.assembly.authorization
    assert authorization is not None
    token = "talk.other" if authorization.is_async else "talk.other.more"
    async with same_session(client, servers[place], token).hearing() as listening:
        assert (await listening.take()).is_priming
        task_id = await begin_task(client)
        if servers[place] is servers[0]:
            questions = [said for said in await take(listening, ASKED, STATUS) if said["method"] == ASKED]
            assert await client.answer(questions[0], ACCEPTED) == 202
            await take(listening, STATUS, STATUS)
        else:
            await take(listening, STATUS)
            assert (await client.post(message("tasks/cancel", {"taskId": task_id}))).status_code == 200
            await take(listening, STATUS)


class Hesitant(IAuthorizer):
    """Allows everything, the first time only after a while."""

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        if not self.asked.is_set():
            self.asked.set()
            await self.go_on.wait()
        return Decision(True, "everybody")


@pytest.mark.parametrize("name", ["job", "nothing"])
async def test_a_request_that_is_cancelled_before_the_decision_ends_like_a_call(
    http: httpx2.AsyncClient, job: Job, name: str
) -> None:
    """Its response is an event stream without a reply; the tool does not run."""
    hesitant = Hesitant()
    async with serving(container_of(job), token_verifier=Scoped(), authorizer=hesitant) as server:
        http.headers["Authorization"] = "Bearer talk"
        client = Client(http, server.url)
        await client.begin()
        running = asyncio.ensure_future(client.post(call(name, id=5, handshake=True)))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await hesitant.asked.wait()
            assert (await client.post(cancelled(5))).status_code == 202
            hesitant.go_on.set()
            response = await running
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
    assert response.text == ""
    assert not job.started.is_set()
