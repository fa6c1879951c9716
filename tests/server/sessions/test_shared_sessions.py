"""Sessions that several processes share through Redis."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import Principal
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.sessions import SessionStoreError
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server.sessions.shared_sessions import SharedSessions
from tests.support.peers.memory_peer import ACCEPTED, text_of
from tests.support.peers.session_client import EventReader
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.scenarios.shared_session_workers import (
    GONE,
    Traveller,
    Worker,
    begun,
    http,
    progress,
    refusal,
    talk,
    working,
)
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.stores.redis_server import RedisServer

__all__ = ["http"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Trusting(ITokenVerifier):
    """Accepts every token."""

    async def verify(self, token: str) -> Principal:
        return Principal(token)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pair(redis: RedisServer) -> AsyncIterator[tuple[Worker, Worker]]:
    """Two processes that share sessions."""
    async with working(redis, "pair:") as one, working(redis, "pair:") as other:
        yield one, other


@pytest_asyncio.fixture(loop_scope="module")
async def workers(pair: tuple[Worker, Worker]) -> AsyncIterator[tuple[Worker, Worker]]:
    """Both of them, without state of earlier tests."""
    for worker in pair:
        worker.talker.reset()
        for session in worker.server.app.sessions.all():
            await worker.server.app.sessions.delete(session)
    yield pair
    for worker in pair:
        worker.server.host.registry.unregister("fresh")


async def test_a_session_is_served_everywhere(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """A session that was created at one process works at the other."""
    one, other = workers
    client = Traveller(http, one.server.url)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "traveller", "version": "1"}}
    reply = await client.post(message("initialize", hello))
    client.headers = {"Mcp-Session-Id": reply.headers["mcp-session-id"]}
    early = await client.at(other).post(call("mutter", handshake=True))
    assert "send notifications/initialized first" in early.text
    assert (await client.at(other).post(message("notifications/initialized", id=None))).status_code == 202
    for worker in (one, other, one):
        assert text_of((await client.at(worker).post(call("mutter", handshake=True))).json()) == "done"
    [restored] = other.server.app.sessions.all()
    assert restored.client is not None
    assert (restored.client.name, restored.era and restored.era.revision.name) == ("traveller", "2025-06-18")


async def test_an_end_is_an_end_everywhere(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """Ending a session at one process ends it, and its calls, at the other."""
    one, other = workers
    client = await begun(http, one)
    async with client.calling(talk()) as stream:
        assert await progress(stream) == 1
        assert (await client.at(other).end()).status_code == 200
        async with asyncio.timeout(PATIENCE_SECONDS):
            await one.talker.stopped.wait()
    for worker in workers:
        assert refusal(await client.at(worker).post(message("ping"))) == GONE
        assert not worker.server.app.sessions.all()


async def test_nobody_else_gets_a_session(redis: RedisServer, http: httpx2.AsyncClient) -> None:
    """At every process, sessions of other users do not exist."""
    prefix, bob = redis.new_prefix(), {"Authorization": "Bearer bob"}
    async with working(redis, prefix, Trusting()) as one, working(redis, prefix, Trusting()) as other:
        http.headers["Authorization"] = "Bearer ann"
        client = await begun(http, one)
        for worker in (other, one):
            assert refusal(await client.at(worker).post(message("ping"), **bob)) == GONE
        assert (await client.at(other).post(message("ping"))).status_code == 200
        assert refusal(await client.at(other).post(message("ping"), **bob)) == GONE


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_question_is_answered_elsewhere(
    workers: tuple[Worker, Worker], http: httpx2.AsyncClient, version: str
) -> None:
    """An answer reaches the call that asked, at any process."""
    one, other = workers
    client = await begun(http, one, version)
    async with client.calling(call("ask_name", handshake=True)) as stream:
        event = await stream.take()
        question = (await stream.take() if event.is_priming else event).message
        assert question["method"] == "elicitation/create"
        assert await client.at(other).answer(question, ACCEPTED) == 202
        assert text_of((await stream.take()).message) == "Ann"


async def test_questions_of_two_processes_differ(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """Two processes can ask one client at the same time, and each gets its own answer."""
    one, other = workers
    client = await begun(http, one, "2025-06-18")
    first, second = client.calling(call("ask_name", id=1, handshake=True)), client.at(other)
    async with first as mine, second.calling(call("ask_name", id=2, handshake=True)) as theirs:
        asked = [(await mine.take()).message, (await theirs.take()).message]
        assert asked[0]["id"] != asked[1]["id"]
        for number, question in enumerate(asked):
            await client.at(workers[1 - number]).answer(
                question, {"action": "accept", "content": {"name": str(number)}}
            )
        assert text_of((await mine.take()).message) == "0"
        assert text_of((await theirs.take()).message) == "1"


async def test_a_call_is_cancelled_elsewhere(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """A cancellation reaches its call at any process."""
    one, other = workers
    client = await begun(http, one)
    async with client.calling(talk(id=7)) as stream:
        assert await progress(stream) == 1
        body = message("notifications/cancelled", {"requestId": 7}, id=None)
        assert (await client.at(other).post(body)).status_code == 202
        async with asyncio.timeout(PATIENCE_SECONDS):
            await one.talker.stopped.wait()


async def test_a_level_holds_everywhere(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """A log level that is set at one process applies at the other."""
    one, other = workers
    client = await begun(http, one, "2025-06-18")
    await client.ask("logging/setLevel", {"level": "error"})
    assert (await client.at(other).post(call("mutter", handshake=True))).headers["content-type"] == "application/json"
    await client.at(other).ask("logging/setLevel", {"level": "debug"})
    reply = await client.post(call("mutter", handshake=True))
    assert reply.headers["content-type"] == "text/event-stream"
    assert "notifications/message" in reply.text


@pytest.mark.parametrize("ended", [False, True])
async def test_a_call_is_resumed_elsewhere(
    workers: tuple[Worker, Worker], http: httpx2.AsyncClient, ended: bool
) -> None:
    """A call can be resumed at another process, with missed messages, new ones and the reply."""
    one, other = workers
    client = await begun(http, one)
    async with client.calling(talk()) as stream:
        event = await stream.take()
        assert await progress(stream) == 1
    one.talker.say(2)
    if ended:
        one.talker.end.set()
        await until(lambda: not one.server.app.sessions.all()[0].calls)
    async with client.at(other).hearing(event.id) as stream:
        assert (await progress(stream), await progress(stream)) == (1, 2)
        if not ended:
            one.talker.say(3)
            assert await progress(stream) == 3
            one.talker.end.set()
        assert text_of((await stream.take()).message) == "done"
        assert await stream.rest() == []


async def test_coming_back_again_and_again(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """A stream can move between processes repeatedly, and only the latest connection gets messages."""
    one, other = workers
    client = await begun(http, one)
    async with client.calling(talk()) as stream:
        event = await stream.take()
        assert await progress(stream) == 1
        async with client.at(other).hearing(event.id) as second:
            assert await progress(second) == 1
            assert await stream.rest() == []
            one.talker.say(2)
            assert await progress(second) == 2
            async with client.hearing(event.id) as third:
                assert await second.rest() == []
                assert (await progress(third), await progress(third)) == (1, 2)
                one.talker.end.set()
                assert text_of((await third.take()).message) == "done"
                assert await third.rest() == []


async def append_nothing(session: str, stream: str, message: bytes) -> str:
    raise SessionStoreError("the process is dead")


async def test_a_stream_whose_process_died_ends(
    redis: RedisServer, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process of a call dies, resumed streams end."""
    prefix = redis.new_prefix()
    async with working(redis, prefix) as other:
        async with working(redis, prefix) as one:
            client = await begun(http, one)
            async with client.calling(talk()) as stream:
                event = await stream.take()
                assert await progress(stream) == 1
            sessions = one.server.app.sessions
            await sessions.close()  # simulates a dead process, which stores no more events
            monkeypatch.setattr(sessions._store, "append", append_nothing)
        async with client.at(other).hearing(event.id) as stream:
            assert await progress(stream) == 1
            assert await stream.rest() == []


async def test_an_unknown_event_is_refused_elsewhere(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """An unknown event id is rejected with 400 at every process."""
    client = await begun(http, workers[0])
    for worker in workers:
        for unknown in ("nonsense", "0123456789abcdef.1"):
            headers = {**client.headers, "Accept": "text/event-stream", "Last-Event-ID": unknown}
            assert (await http.get(worker.server.url, headers=headers)).status_code == 400


async def test_news_reach_the_process_that_a_client_listens_at(
    workers: tuple[Worker, Worker], http: httpx2.AsyncClient
) -> None:
    """A change at any process is sent to the client's stream, wherever it is."""
    one, other = workers
    client = await begun(http, one)
    await client.ask("resources/subscribe", {"uri": "note://one"})
    async with client.at(other).hearing() as news:
        assert (await news.take()).is_priming
        for worker in (one, other):
            worker.server.host.roles.resource_registry.updated("note://one")
            assert (await news.take()).message["params"] == {"uri": "note://one"}
            worker.server.host.registry.register(SchemaTool("fresh", {}, lambda arguments: "fresh"))
            assert (await news.take()).message["method"] == "notifications/tools/list_changed"
        await client.ask("resources/unsubscribe", {"uri": "note://one"})
        await client.at(other).ask("ping")
        one.server.host.roles.resource_registry.updated("note://one")
        one.server.host.registry.unregister("fresh")
        assert (await news.take()).message["method"] == "notifications/tools/list_changed"


async def test_what_is_said_to_a_session_reaches_its_stream(
    workers: tuple[Worker, Worker], http: httpx2.AsyncClient
) -> None:
    """Unsolicited messages reach the process with the client's stream."""
    one, other = workers
    client = await begun(http, one)
    async with client.at(other).hearing() as news:
        assert (await news.take()).is_priming
        await client.ask("ping")  # by which it learns of the stream
        [session] = one.server.app.sessions.all()
        session.send(b'{"jsonrpc":"2.0","method":"notifications/said"}')
        assert (await news.take()).message["method"] == "notifications/said"


async def test_the_latest_listener_has_the_news(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """A GET stream at another process replaces the first one, and changes are sent once."""
    one, other = workers
    client = await begun(http, one)
    async with client.hearing() as first:
        assert (await first.take()).is_priming
        async with client.at(other).hearing() as second:
            assert (await second.take()).is_priming
            assert await first.rest() == []
            one.server.host.registry.register(SchemaTool("fresh", {}, lambda arguments: "fresh"))
            assert (await second.take()).message["method"] == "notifications/tools/list_changed"
            async with client.at(other).hearing() as third:
                assert (await third.take()).is_priming
                assert await second.rest() == []


async def test_news_are_resumed_elsewhere(workers: tuple[Worker, Worker], http: httpx2.AsyncClient) -> None:
    """A GET stream can be resumed at another process."""
    one, other = workers
    client = await begun(http, one)
    async with client.hearing() as news:
        event = await news.take()
    registry = one.server.host.registry
    registry.register(SchemaTool("fresh", {}, lambda arguments: "fresh"))
    for worker in (other, one, other):
        async with client.at(worker).hearing(event.id) as news:
            assert (await news.take()).is_priming
            event = await news.take()
            assert event.message["method"] == "notifications/tools/list_changed"
            registry.unregister("fresh")
            assert (await news.take()).message["method"] == "notifications/tools/list_changed"
        registry.register(SchemaTool("fresh", {}, lambda arguments: "fresh"))
    registry.unregister("fresh")


async def test_news_are_resumed_elsewhere_after_an_outage(
    workers: tuple[Worker, Worker], http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that could not take over a GET stream at first takes it over when the client tries again."""
    one, other = workers
    client = await begun(http, one)
    async with client.hearing() as news:
        event = await news.take()
    sessions = other.server.app.sessions
    assert isinstance(sessions, SharedSessions)
    with monkeypatch.context() as outage:
        outage.setattr(sessions._bus.store, "send", unavailable)
        async with client.at(other).listen(**{"Last-Event-ID": str(event.id)}) as response:
            assert response.status_code == 503
    async with client.at(other).hearing(event.id) as news:
        assert (await news.take()).is_priming
        one.server.host.registry.register(SchemaTool("fresh", {}, lambda arguments: "fresh"))
        assert (await news.take()).message["method"] == "notifications/tools/list_changed"


async def unavailable(*arguments: object, **options: object) -> bool:
    raise SessionStoreError("Redis does not respond")


async def test_listeners_without_a_session_hear_all_processes(
    workers: tuple[Worker, Worker], http: httpx2.AsyncClient
) -> None:
    """A `subscriptions/listen` at one process delivers changes at another."""
    one, other = workers
    wanted = {"notifications": {"resourceSubscriptions": ["note://one"]}, "_meta": META}
    body, headers = message("subscriptions/listen", wanted), mirrored("subscriptions/listen")
    async with http.stream("POST", other.server.url, content=body, headers=headers) as response:
        stream = EventReader(response)
        assert (await stream.take()).message["method"] == "notifications/subscriptions/acknowledged"
        one.server.host.roles.resource_registry.updated("note://one")
        assert (await stream.take()).message["params"]["uri"] == "note://one"
