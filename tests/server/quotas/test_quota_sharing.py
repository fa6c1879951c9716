"""Replicas of a server that share their limits in a real Redis, including an outage."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_server import InProcessClient, ServerHost
from axolotl_server.access.quotas import quota_layer, quota_store
from axolotl_server.settings.policies import QuotaSettings
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.stores.redis_server import RedisServer, redis_client
from tests.support.tools import Echo, container_of

ADA, BOB = Principal("ada"), Principal("bob")
RULE = {"per": ["principal"], "rate_per_second": 0.0001, "burst": 6}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a store on a busy machine, and try it again at once."""
    monkeypatch.setattr("axolotl_server.access.quotas.STORE_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr("axolotl_server.access.quotas._STORE_RETRY_SECONDS", 0.001)


class Replica:
    """A server with its own connections."""

    def __init__(self, stack: AsyncExitStack, redis: RedisServer, **settings: Any) -> None:
        self._stack = stack
        self._url = redis.url
        self._settings = QuotaSettings.model_validate({"rules": {"shared": RULE}, **settings})

    async def start(self) -> "Replica":
        redis = await self._stack.enter_async_context(redis_client(self._url))
        store = quota_store(self._settings, redis)
        layer = quota_layer(self._settings, store)
        self._host = await self._stack.enter_async_context(ServerHost(container_of(Echo(), layers=[layer])))
        return self

    async def outcome(self, principal: Principal = ADA) -> str:
        """Make a call and return its outcome."""
        outcome = await InProcessClient(self._host.handler, principal).call("echo", {"text": "passed"})
        return str(outcome.meta["axolotl/reason"]) if outcome.is_error else outcome.text


async def test_two_servers_share_one_limit() -> None:
    """Calls at one replica count at the other, and principals have separate limits."""
    with RedisServer() as redis:
        async with AsyncExitStack() as stack:
            first, second = [await Replica(stack, redis).start() for _ in range(2)]
            outcomes = await asyncio.gather(*(replica.outcome() for _ in range(10) for replica in (first, second)))
            assert sorted(outcomes) == ["passed"] * 6 + ["quota"] * 14
            assert [await second.outcome(BOB) for _ in range(7)] == ["passed"] * 6 + ["quota"]
            assert await first.outcome(BOB) == "quota"


@pytest.mark.parametrize(("on_failure", "meanwhile"), [("open", "passed"), ("closed", "quota_unavailable")])
async def test_redis_dies_and_comes_back_under_calls(
    on_failure: str, meanwhile: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every call is answered while Redis is killed and restarted, and calls are counted again afterwards."""
    with RedisServer() as redis:
        async with AsyncExitStack() as stack:
            replicas = [await Replica(stack, redis, on_store_failure=on_failure).start() for _ in range(2)]
            outcomes: list[str] = []
            ended = asyncio.Event()

            async def keep_calling(replica: Replica) -> None:
                while not ended.is_set():
                    outcomes.append(await replica.outcome())

            async def heard(expected: str) -> None:
                outcomes.clear()
                await until(lambda: expected in outcomes)

            callers = [asyncio.ensure_future(keep_calling(replica)) for replica in replicas for _ in range(5)]
            await heard("quota")
            await asyncio.to_thread(redis.kill)
            await heard(meanwhile)
            await asyncio.to_thread(redis.start)
            await heard("quota")
            ended.set()
            await asyncio.gather(*callers)
            assert set(outcomes) <= {"passed", "quota", meanwhile}
            assert await replicas[0].outcome() == await replicas[1].outcome() == "quota"
    logged = caplog.text
    assert "The quota store is unavailable (Redis at unix://" in logged
    assert "The quota store is available again" in logged


async def test_a_hanging_redis_delays_one_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Redis that does not answer delays one call by the timeout, and the next calls not at all."""
    with RedisServer() as redis:
        async with AsyncExitStack() as stack:
            monkeypatch.setattr("axolotl_server.access.quotas._STORE_RETRY_SECONDS", 1000.0)
            monkeypatch.setattr("axolotl_server.access.quotas.STORE_TIMEOUT_SECONDS", 0.2)
            replica = await Replica(stack, redis).start()
            assert await replica.outcome() == "passed"
            redis.hang()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert [await replica.outcome() for _ in range(1000)] == ["passed"] * 1000
            redis.go_on()
    assert caplog.text.count("The quota store is unavailable") == 1
