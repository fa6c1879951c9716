"""Policies in the settings, together on one server."""

import asyncio
import logging

import pytest
from dependency_injector import providers
from redis import Redis

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_core.policies.tool_rules import ClaimResult, Idempotency, IResultStore
from axolotl_server import InProcessClient, ServerHost, connect
from axolotl_server.client.replies import Question
from axolotl_server.stores.results import MemoryResultStore
from tests.support.audited_calls import MemorySink
from tests.support.servers.serving import until
from tests.support.stores.redis_server import RedisServer
from tests.support.tools import container_of


class Pay(ITool[NoArguments, str]):
    """Counts its payments, and waits until it is released."""

    name = "pay"
    annotations = ToolAnnotations(destructive=True)
    idempotency = Idempotency()

    def __init__(self) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.runs += 1
        self.started.set()
        await self.go_on.wait()
        return f"payment {self.runs}"


class Broken(ITool[NoArguments, str]):
    name = "broken"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        raise RuntimeError("swordfish")


class OwnStore(MemoryResultStore, IResultStore):
    """A store of the container, which only the container closes."""

    def __init__(self) -> None:
        super().__init__(10, 10_000)
        self.claimed: list[str] = []
        self.closed = False

    async def claim(self, key: str, holder: str) -> ClaimResult:
        self.claimed.append(key)
        return await super().claim(key, holder)

    async def close(self) -> None:
        self.closed = True


async def test_tools_by_name_need_approval() -> None:
    """Settings can require approval for tools by patterns, without affecting others."""
    asked: list[str] = []

    def answer(question: Question) -> dict[str, bool]:
        asked.append(question.message)
        return {"approve": False}

    settings = {"approval": {"tools": ["PA*"]}}
    async with connect(container_of(Pay(), Broken()), settings=settings, answer=answer) as client:
        assert (await client.call("pay")).meta["axolotl/reason"] == "not_approved"
        await client.call("broken")
    assert len(asked) == 1


async def test_replicas_share_results_through_redis() -> None:
    """With one setting, servers share results through Redis."""
    first, second = Pay(), Pay()
    with RedisServer() as redis:
        settings = {"redis": {"url": redis.url}}
        async with connect(container_of(first), settings=settings) as client:
            assert (await client.call("pay")).text == "payment 1"
        async with connect(container_of(second), settings=settings) as client:
            assert (await client.call("pay")).text == "payment 1"
    assert (first.runs, second.runs) == (1, 0)


async def test_one_redis_client() -> None:
    """Quotas and results share a Redis client, which is closed on shutdown."""
    with RedisServer() as redis, Redis(unix_socket_path=redis.socket) as other:
        settings = {
            "redis": {"url": redis.url, "prefix": "shop:"},
            "quotas": {"rules": {"rate": {"rate_per_second": 1, "burst": 2}}},
        }
        async with connect(container_of(Pay()), settings=settings) as client:
            await client.call("pay")
            assert sorted(key.split(b":")[1] for key in other.keys("shop:*")) == [b"quota", b"result"]
            assert len(other.client_list()) == 2
        await until(lambda: len(other.client_list()) == 1)


async def test_a_store_of_the_container() -> None:
    """A store of the container is used and not closed by the server."""
    container, store = container_of(Pay()), OwnStore()
    container.result_store = providers.Object(store)
    async with connect(container) as client:
        await client.call("pay")
    assert len(store.claimed) == 1
    assert not store.closed


async def test_calls_that_share_a_run_are_recorded_each() -> None:
    """Each call of a shared run has an end record, and the run has one start record, for the first call."""
    sink, pay = MemorySink(), Pay()
    container = container_of(pay)
    container.audit_sinks = providers.Object([sink])
    pay.go_on.clear()
    async with ServerHost(container) as host:
        client = InProcessClient(host.handler)
        first = asyncio.ensure_future(client.call("pay"))
        await pay.started.wait()
        second = asyncio.ensure_future(client.call("pay"))
        await until(lambda: len(host.handler.inflight) == 2)
        pay.go_on.set()
        assert {(await first).text, (await second).text} == {"payment 1"}
        await client.close()
    starts = [record.call_id for record in sink.records if record.event == "start"]
    ends = [record.call_id for record in sink.records if record.event == "end"]
    assert len(starts) == 1
    assert len(set(ends)) == 2
    assert starts[0] in ends


async def test_one_reference_for_answer_log_and_record(caplog: pytest.LogCaptureFixture) -> None:
    """A hidden error has the same id in the response, the log and the audit record."""
    sink, container = MemorySink(), container_of(Broken())
    container.audit_sinks = providers.Object([sink])
    with caplog.at_level(logging.ERROR, "axolotl"):
        async with connect(container) as client:
            failed = await client.call("broken")
    reference = failed.meta["axolotl/reference"]
    assert reference in failed.text
    assert reference in caplog.text
    assert [(record.call_id, record.outcome) for record in sink.records if record.event == "end"] == [
        (reference, "failed")
    ]
