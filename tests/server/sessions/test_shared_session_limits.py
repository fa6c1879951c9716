"""Limits, outages and endings of sessions that workers share."""

import asyncio
import gc
import weakref
from typing import Any

import httpx2
import pytest

from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.peers.memory_peer import ACCEPTED, container_with, text_of
from tests.support.peers.wire import call, message, mirrored
from tests.support.scenarios.shared_session_workers import (
    GONE,
    Talker,
    Traveller,
    begun,
    http,
    progress,
    refusal,
    talk,
    working,
)
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.stores.redis_server import RedisServer

__all__ = ["http"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_maximum_counts_all(redis: RedisServer, http: httpx2.AsyncClient) -> None:
    """`sessions.maximum` applies to all processes together."""
    prefix = redis.new_prefix()
    async with working(redis, prefix, maximum=2) as one, working(redis, prefix, maximum=2) as other:
        first = await begun(http, one)
        await begun(http, other)
        for worker in (one, other):
            reply = await Traveller(http, worker.server.url).begin()
            assert refusal(reply) == (503, "Too many sessions: end one with DELETE, or try again later")
        await first.at(other).end()
        assert (await Traveller(http, one.server.url).begin()).status_code == 200


async def test_copies_make_room(redis: RedisServer, http: httpx2.AsyncClient) -> None:
    """A process with too many cached sessions drops the least recently used, and restores them on demand."""
    prefix = redis.new_prefix()
    async with working(redis, prefix, maximum=3) as one, working(redis, prefix, maximum=3) as other:
        clients = [await begun(http, worker) for worker in (one, other, one)]
        for _ in range(2):
            for client in clients:
                for worker in (one, other):
                    assert await client.at(worker).ask("ping") == {}
        assert (await clients[0].end()).status_code == 200
        fourth = await begun(http, one)
        assert await fourth.at(other).ask("ping") == {}


async def test_without_resumption(redis: RedisServer, http: httpx2.AsyncClient) -> None:
    """Without resumption, changes still reach the process with the client's stream."""
    prefix = redis.new_prefix()
    async with working(redis, prefix, resumable="off") as one, working(redis, prefix, resumable="off") as other:
        client = await begun(http, one)
        async with client.at(other).hearing() as news:
            await client.at(other).ask("ping")
            one.server.host.registry.register(SchemaTool("fresh", {}, lambda arguments: "fresh"))
            event = await news.take()
            assert (event.id, event.message["method"]) == (None, "notifications/tools/list_changed")


async def test_an_outage(http: httpx2.AsyncClient) -> None:
    """While Redis is down, requests in sessions get 503, and others work; afterwards everything works again."""
    with RedisServer("--appendonly", "yes") as redis:
        async with working(redis, "out:", store_timeout_seconds=1.0) as one, working(redis, "out:") as other:
            client = await begun(http, one)
            redis.kill()
            reply = await client.post(message("ping"))
            assert refusal(reply) == (503, "Service unavailable: the session store is unavailable; try again")
            assert reply.headers["retry-after"] == "1"
            assert (await Traveller(http, one.server.url).begin()).status_code == 503
            plain = await http.post(one.server.url, content=call("mutter"), headers=mirrored(name="mutter"))
            assert plain.status_code == 200
            redis.start()
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (await client.post(message("ping"))).status_code == 503:
                    pass
            for worker in (one, other):
                assert await client.at(worker).ask("ping") == {}
            async with client.calling(call("ask_name", handshake=True)) as stream:
                event = await stream.take()
                question = (await stream.take() if event.is_priming else event).message
                assert await client.at(other).answer(question, ACCEPTED) == 202
                assert text_of((await stream.take()).message) == "Ann"


async def test_a_redis_that_forgot(http: httpx2.AsyncClient) -> None:
    """If Redis loses its data, sessions end, their calls are stopped, and clients initialize again."""
    with RedisServer() as redis:
        async with working(redis, "forgot:", store_timeout_seconds=PATIENCE_SECONDS) as one:
            client = await begun(http, one)
            async with client.calling(talk()) as stream:
                assert await progress(stream) == 1
                redis.kill()
                redis.start()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await one.talker.stopped.wait()
            assert refusal(await client.post(message("ping"))) == GONE
            assert (await client.begin()).status_code == 400  # it still names the ended session
            client.headers = {}
            assert (await client.begin()).status_code == 200


async def used(server: HttpServer, http: httpx2.AsyncClient, talker: Talker) -> weakref.ref[Any]:
    """Begin a session, use its streams, and end it."""
    client = Traveller(http, server.url)
    await client.begin()
    [known] = server.app.sessions.all()
    session = weakref.ref(known)
    del known
    async with client.hearing() as news, client.calling(talk()) as stream:
        assert (await news.take()).is_priming
        assert await progress(stream) == 1
        talker.end.set()
        assert text_of((await stream.take()).message) == "done"
    talker.reset()
    await client.end()
    return session


@pytest.mark.parametrize("is_shared", [False, True])
async def test_what_has_ended_is_gone_at_once(
    redis: RedisServer, http: httpx2.AsyncClient, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ended session and its streams are released without garbage collection."""
    monkeypatch.setattr("axolotl_server.sessions.sessions.STORE_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    shared = {
        "redis": {"url": redis.url, "prefix": "gone:"},
    }
    talker = Talker()
    async with serving(container_with((talker,)), shared if is_shared else {}) as server:
        gc.disable()
        try:
            await used(server, http, talker)  # errors of the library at the first use of Redis keep their callers
            session = await used(server, http, talker)
            await until(lambda: session() is None)
        finally:
            gc.enable()
