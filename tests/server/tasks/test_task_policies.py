"""Policies of tasks: audit records, idempotency, authorization and quotas, on replicas and in workers."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import Breaker, Idempotency, Principal, ToolContext, tool
from axolotl_server import ServerHost
from tests.support.peers.memory_peer import Peer
from tests.support.peers.task_peers import DirectedPeer, Job, RequestingPeer
from tests.support.servers.task_engines import ENGINES, KEY, STORES, store_of
from tests.support.tools import container_of

ADA = Principal("ada", "engines")
EVE = Principal("eve", "engines")


@tool(task_support="optional", idempotency=Idempotency(key="number"))
async def pay(number: int, note: str = "") -> str:
    """Pay a bill."""
    return f"paid {number}"


@tool(task_support="optional")
async def halve(part: int) -> int:
    """Divide by two."""
    return part // 2


@tool(task_support="detached")
async def halve_later(part: int, context: ToolContext) -> int:
    """Divide by two, in a task."""
    await context.detach()
    return part // 2


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store."""
    with store_of(request.param) as place:
        assert place is not None
        yield place


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of an empty store; None if tasks are in memory."""
    with store_of(request.param) as place:
        yield place


@asynccontextmanager
async def replica(url: str | None, *tools: Any, works: bool, **sections: Any) -> AsyncIterator[ServerHost]:
    """A server on a store, which runs tasks or does not."""
    flags = {"tasks": {"url": url, "lease_seconds": 1.0}, "protocol": {"state_keys": [KEY]}, **sections}
    async with ServerHost(container_of(*(tools or (pay, halve, halve_later))), flags=flags) as host:
        await host.begin_tasks(works=works)
        yield host


def records(path: Path) -> list[dict[str, Any]]:
    """Read the records of calls in an audit log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["event"] in ("start", "end")]


def audit(path: Path) -> dict[str, Any]:
    return {"jsonl_path": str(path), "durability": "write"}


async def test_both_sides_of_a_task_are_recorded(url: str, tmp_path: Path) -> None:
    """The replica records that a call was accepted, the worker its run, with one reference and the ID of the task."""
    here, there = tmp_path / "replica.log", tmp_path / "worker.log"
    async with replica(url, works=False, audit=audit(here)) as server, replica(url, works=True, audit=audit(there)):
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("halve", {"part": 8}))["taskId"]
        await peer.outcome(task_id)
    [accepted] = records(here)
    assert (accepted["event"], accepted["outcome"], accepted["task"]) == ("end", "accepted", task_id)
    assert (accepted["subject"], accepted["name"], "run" in accepted) == ("ada", "halve", False)
    start, end = records(there)
    assert [one["event"] for one in (start, end)] == ["start", "end"]
    assert end["outcome"] == "ok"
    for record in (start, end):
        assert (record["task"], record["run"], record["subject"]) == (task_id, 1, "ada")
        assert record["call_id"] == accepted["call_id"]
        assert record["digest"] == accepted["digest"]


async def test_a_call_that_is_not_accepted_is_recorded(tmp_path: Path) -> None:
    """Wrong arguments leave a record without a task."""
    log = tmp_path / "replica.log"
    async with replica(f"sqlite:///{tmp_path}/tasks.db", works=False, audit=audit(log)) as server:
        peer = await DirectedPeer.connect(server, ADA)
        await peer.ask("tools/call", {"name": "halve", "arguments": {"part": "x"}})
    [record] = records(log)
    assert (record["outcome"], "task" in record) == ("invalid_arguments", False)


async def test_an_open_task_with_the_same_key_is_returned(url: str) -> None:
    """A repeated call gets the task that is open; other callers, keys and arguments get tasks of their own."""
    async with replica(url, works=False) as server, replica(url, works=False) as other:
        peers = [await DirectedPeer.connect(host, ADA) for host in (server, other) * 5]
        peer = peers[0]
        eve = await DirectedPeer.connect(server, EVE)
        started = await asyncio.gather(*(one.start("pay", {"number": 1}) for one in peers))
        [task_id] = {task["taskId"] for task in started}
        others = [
            await eve.start("pay", {"number": 1}),
            await peer.start("pay", {"number": 2}),
            await peer.start("pay", {"number": 1, "note": "another"}),
            await peer.start("halve", {"part": 1}),
            await peer.start("halve", {"part": 1}),
        ]
        assert len({task_id, *(task["taskId"] for task in others)}) == 6
        async with replica(url, works=True):
            assert "paid 1" in str(await peer.outcome(task_id))
        assert (await peer.start("pay", {"number": 1}))["taskId"] != task_id


async def test_keys_depend_on_a_secret(tmp_path: Path) -> None:
    """Nobody who reads the store can find arguments by trying them: with another secret, the key is another one."""
    stored: set[bytes] = set()
    for secret in (KEY, KEY[::-1]):
        path = tmp_path / f"{len(stored)}.db"
        async with replica(f"sqlite:///{path}", works=False, protocol={"state_keys": [secret]}) as server:
            await (await DirectedPeer.connect(server, ADA)).start("pay", {"number": 1})
            with closing(sqlite3.connect(path)) as database:
                stored.update(key for (key,) in database.execute("select key from tasks"))
    assert len(stored) == 2


def allow(*subjects: str) -> dict[str, Any]:
    rule = {"name": "known", "effect": "allow", "who": {"subjects": list(subjects)}, "what": {"kinds": ["tool"]}}
    return {"rules": [rule]}


async def test_access_is_checked_again_in_the_worker(url: str) -> None:
    """A caller that may not use the tool gets no task; access that was revoked since is denied by the worker."""
    async with replica(url, works=False, authorization=allow("ada")) as server:
        peer, eve = await DirectedPeer.connect(server, ADA), await DirectedPeer.connect(server, EVE)
        denied = await eve.ask("tools/call", {"name": "halve", "arguments": {"part": 2}})
        task_id = (await peer.start("halve", {"part": 8}))["taskId"]
        assert len(await server.assembly.tasks.engine.of(None, 0, 10)) == 1
        async with replica(url, works=True, authorization=allow("eve")):
            outcome = await peer.outcome(task_id)
        assert "error" in outcome, outcome
        assert outcome["error"] == denied["error"]


@pytest.mark.parametrize("name", ["halve", "halve_later"])
async def test_a_quota_is_charged_once(engine: str | None, name: str) -> None:
    """A task is charged when it is submitted, or in the request that it was detached from, and not when it runs."""
    quotas = {"rules": {"two": {"limit": 2, "window": "day"}}}
    async with replica(engine, works=True, quotas=quotas) as server:
        peer = await DirectedPeer.connect(server, ADA)
        for part in (2, 4):
            task_id = (await peer.start(name, {"part": part}))["taskId"]
            assert str(part // 2) in str((await peer.outcome(task_id))["result"]["content"])
        refused = await peer.ask("tools/call", {"name": name, "arguments": {"part": 6}})
        assert refused["result"]["isError"] is True
        assert len(await server.assembly.tasks.engine.of(None, 0, 10)) == 2


async def test_a_server_that_runs_its_own_tasks_records_both(engine: str | None, tmp_path: Path) -> None:
    """Whatever the engine, the log has the acceptance, and start and end of the run, under one reference."""
    log = tmp_path / "server.log"
    async with replica(engine, works=True, audit=audit(log)) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("halve", {"part": 8}))["taskId"]
        await peer.outcome(task_id)
    written = {(one["event"], one.get("outcome"), one["task"], one.get("run")): one for one in records(log)}
    assert written.keys() == {
        ("end", "accepted", task_id, None),
        ("start", None, task_id, 1),
        ("end", "ok", task_id, 1),
    }
    assert len({one["call_id"] for one in written.values()}) == 1


async def test_wrong_arguments_create_no_task(engine: str | None) -> None:
    """Whatever the engine and the design, the client gets the error at once."""
    async with replica(engine, works=True) as server:
        directed = await DirectedPeer.connect(server, ADA)
        reply = await directed.ask("tools/call", {"name": "halve", "arguments": {"part": "x"}})
        assert reply["result"]["isError"] is True
        requesting = await RequestingPeer.connect(server, ADA)
        error = await requesting.error("tools/call", {"name": "halve", "arguments": {"part": "x"}, "task": {}})
        assert error["code"] == -32602
        assert await server.assembly.tasks.engine.of(None, 0, 10) == ()


async def test_a_circuit_breaker_counts_all_calls(engine: str | None) -> None:
    """Failures of tasks open the circuit for direct calls too: both use the same upstream."""

    @tool(task_support="optional", breaker=Breaker(failures=2, open_seconds=60))
    async def fetch() -> str:
        """Fail."""
        raise ConnectionError("the upstream is down")

    async with replica(engine, fetch, works=True) as server:
        peer = await DirectedPeer.connect(server, ADA)
        for _ in range(2):
            await peer.outcome((await peer.start("fetch"))["taskId"])
        direct = await Peer(server, principal=ADA).ask("tools/call", {"name": "fetch", "arguments": {}})
        assert direct["result"]["_meta"]["axolotl/reason"] == "circuit_open"


async def test_a_limit_counts_all_calls_in_memory() -> None:
    """Without a queue, tasks and direct calls of a tool share its limit."""
    job = Job(max_concurrency=1, queue_limit=0)
    async with replica(None, job, works=True) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("job"))["taskId"]
        await job.started.wait()
        direct = await Peer(server, principal=ADA).ask("tools/call", {"name": "job", "arguments": {}})
        assert direct["result"]["_meta"]["axolotl/reason"] == "overloaded"
        job.release.set()
        assert "done" in str(await peer.outcome(task_id))
