"""Policies of tasks: audit records, idempotency, authorization and quotas, on replicas and in workers."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import containers, providers
from msgspec.structs import replace
from pydantic import BaseModel

from axolotl_core import Context, Principal, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.policies.tool_rules import Breaker, Idempotency
from axolotl_server import ServerHost
from tests.support.audited_calls import Fickle
from tests.support.eager_tasks import start_at_once
from tests.support.peers.memory_peer import Peer
from tests.support.peers.task_hosts import serve_tasks, service_of
from tests.support.peers.task_peers import DESIGNS, DirectedPeer, Job, RequestingPeer, TaskPeer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.servers.task_engines import ENGINES, KEY, STORES, store_of
from tests.support.tools import container_of

YES = {"action": "accept", "content": {"approve": True}}
NO = {"action": "accept", "content": {"approve": False}}
ADA = Principal("ada", "engines")
EVE = Principal("eve", "engines")


class Confirmation(BaseModel):
    sure: bool


@tool(task_support="optional", idempotency=Idempotency(key="number"))
async def pay(number: int, note: str = "") -> str:
    """Pay a bill."""
    return f"paid {number}"


@tool(task_support="optional")
async def halve(part: int) -> int:
    """Divide by two."""
    return part // 2


@tool(task_support="detached")
async def halve_later(part: int, context: Context) -> int:
    """Divide by two, in a task."""
    await context.detach()
    return part // 2


@tool(task_support="optional", task_restart="resume", requires_approval=True)
async def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"


@tool(task_support="optional")
async def reveal(context: Context) -> str:
    """Return who the caller is."""
    return f"{context.principal.subject} of {context.principal.tenant}"


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
        await serve_tasks(host, works=works)
        yield host


def records(path: Path) -> list[dict[str, Any]]:
    """Read the records of calls in an audit log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["event"] in ("start", "end")]


def decisions(path: Path) -> list[dict[str, Any]]:
    """Read the records of answers and cancellations in an audit log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["event"] in ("answered", "cancelled")]


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


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("answer", "action"), [(YES, "accept"), (NO, "decline"), ({"action": "cancel"}, "cancel")])
async def test_an_answer_is_recorded(
    engine: str | None, design: str, answer: dict[str, Any], action: str, tmp_path: Path
) -> None:
    """The server that takes an answer records who gave it, before the code runs; an approval without a yes is a no."""
    log = tmp_path / "server.log"
    async with replica(engine, drop, works=True, audit=audit(log)) as server:
        peer = await DESIGNS[design].connect(server, ADA)
        task_id = (await peer.start("drop", {"table": "t"}))["taskId"]
        await peer.respond(task_id, answer, key="axolotl/approval")
        await peer.outcome(task_id)
    [record] = decisions(log)
    assert (record["event"], record["name"], record["task"]) == ("answered", "drop", task_id)
    assert (record["key"], record["action"]) == ("axolotl/approval", action)
    assert (record["subject"], record["tenant"]) == ("ada", "engines")
    starts = [one["seq"] for one in records(log) if one["event"] == "start"]
    assert all(record["seq"] < seq for seq in starts)
    assert len(starts) == (action == "accept")


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_cancellation_of_a_queued_task_is_recorded(url: str, design: str, tmp_path: Path) -> None:
    """A task that no worker has begun leaves a record of who cancelled it, and only the first cancellation counts."""
    log = tmp_path / "server.log"
    async with replica(url, works=False, audit=audit(log)) as server:
        peer = await DESIGNS[design].connect(server, ADA)
        task_id = (await peer.start("halve", {"part": 8}))["taskId"]
        for _ in range(2):
            await peer.ask("tasks/cancel", {"taskId": task_id})
    [record] = decisions(log)
    assert (record["event"], record["name"], record["task"], record["reason"]) == (
        "cancelled", "halve", task_id, "client",
    )  # fmt: skip
    assert record["subject"] == "ada"


async def test_an_operator_cancels_a_running_task(engine: str | None, tmp_path: Path) -> None:
    """The record of the run and the caller of the task are told that it was an operator."""
    log, job = tmp_path / "server.log", Job()
    async with replica(engine, job, works=True, audit=audit(log)) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("job"))["taskId"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await job.started.wait()
            await service_of(server).engine.cancel(task_id, None, CancelReason.OPERATOR)
            await job.cancelled.wait()
        assert (await peer.until(task_id, "cancelled"))["statusMessage"] == "An operator cancelled the task"
    end = records(log)[-1]
    assert (end["event"], end["outcome"], end["reason"], end["task"]) == ("end", "cancelled", "operator", task_id)


async def test_answers_wait_for_the_audit_log(engine: str | None) -> None:
    """While the audit log fails, answers are refused, and are taken when it works again."""
    sink = Fickle()
    container = container_of(drop)
    container.audit_sinks = providers.List(providers.Object(sink))
    flags = {"tasks": {"url": engine}, "protocol": {"state_keys": [KEY]}}
    async with ServerHost(container, flags=flags) as server:
        await serve_tasks(server, works=True)
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("drop", {"table": "t"}))["taskId"]
        await peer.until(task_id, "input_required")
        sink.well = False
        assert "could not be recorded" in str(
            await peer.ask("tools/call", {"name": "drop", "arguments": {"table": "u"}})
        )
        assert "error" in await peer.update(task_id, **{"axolotl/approval": YES})
        sink.well = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "error" in await peer.update(task_id, **{"axolotl/approval": YES}):
                pass
        assert "dropped t" in str((await peer.outcome(task_id))["result"])


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


async def test_keys_are_rotated(url: str) -> None:
    """Processes that have the old and the new secret in another order, at the same time, make no second task."""
    old, new = KEY, KEY[::-1]
    orders = [[old], [old, new], [new, old], [new]]
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(replica(url, works=False, protocol={"state_keys": keys})) for keys in orders
        ]
        peers = [[await DirectedPeer.connect(server, ADA) for _ in range(2)] for server in servers]
        for number, neighbors in enumerate([*pairwise(peers)] * 10):
            started = await asyncio.gather(*(peer.start("pay", {"number": number}) for peer in chain(*neighbors)))
            assert len({task["taskId"] for task in started}) == 1


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
        assert len(await service_of(server).engine.of(None, 0, 10)) == 1
        async with replica(url, works=True, authorization=allow("eve")):
            outcome = await peer.outcome(task_id)
        assert "error" in outcome, outcome
        assert outcome["error"] == denied["error"]


CLERK = Principal("ada", "engines", frozenset({"payroll"}), frozenset({"clerk"}))
CLERKS_ONLY = {"rules": [{"name": "clerks", "effect": "allow", "who": {"roles": ["clerk"]}}]}
"""Other tools are denied to everyone else."""


@tool(task_support="optional", scopes=frozenset({"payroll"}))
async def salaries(context: Context) -> str:
    """List the salaries if the caller confirms it."""
    await context.ask(Confirmation, "Show them?", key="confirm")
    return "SALARIES"


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@pytest.mark.parametrize(
    ("authorization", "lesser"),
    [
        pytest.param({"default": "allow"}, Principal("ada", "engines", roles=frozenset({"clerk"})), id="scope"),
        pytest.param(CLERKS_ONLY, Principal("ada", "engines", frozenset({"payroll"})), id="role"),
    ],
)
async def test_access_is_checked_again_for_what_a_task_leaves(
    engine: str | None, design: type[TaskPeer], authorization: Any, lesser: Principal
) -> None:
    """The same subject without the scope or the role of a tool neither sees, answers nor cancels a task of it."""
    async with replica(engine, salaries, works=True, authorization=authorization) as server:
        full, less = await design.connect(server, CLERK), await design.connect(server, lesser)
        task_id = (await full.start("salaries"))["taskId"]
        await full.until(task_id, "input_required")
        answers = {"inputResponses": {"confirm": {"action": "accept", "content": {"sure": True}}}}
        methods = ["tasks/get", "tasks/cancel", "tasks/update" if design is DirectedPeer else "tasks/result"]
        for method in methods:
            denied = await less.error(method, {"taskId": task_id, **answers})
            assert denied == await full.error(method, {"taskId": "A" * 32, **answers})
        if design is DirectedPeer:
            number = less.send("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
            accepted = await less.hear("notifications/subscriptions/acknowledged")
            assert accepted["params"]["notifications"] == {}
            less.cancel(number)
        else:
            listed = [await one.result("tasks/list") for one in (less, full)]
            assert [len(one["tasks"]) for one in listed] == [0, 1]
        await full.respond(task_id, answers["inputResponses"]["confirm"], key="confirm")
        assert "SALARIES" in str(await full.outcome(task_id))
        assert (await less.error("tasks/get", {"taskId": task_id}))["code"] == -32602


async def test_tasks_of_a_tool_that_is_gone(engine: str | None) -> None:
    """Where access is restricted, nobody sees the tasks of a tool that is gone, because nobody can tell who may."""
    async with replica(engine, works=True, authorization={"default": "allow"}) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("halve", {"part": 2}))["taskId"]
        await peer.outcome(task_id)
        server.registry.unregister("halve")
        assert (await peer.error("tasks/get", {"taskId": task_id}))["code"] == -32602


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
        assert len(await service_of(server).engine.of(None, 0, 10)) == 2


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


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
async def test_a_loop_that_starts_its_tasks_at_once(design: type[TaskPeer], tmp_path: Path) -> None:
    """In the loop of such a host, a task in memory has its caller, and runs after it was recorded as accepted."""
    log, loop = tmp_path / "server.log", asyncio.get_running_loop()
    async with replica(None, reveal, works=True, audit=audit(log)) as server:
        peer = await design.connect(server, ADA)
        loop.set_task_factory(start_at_once)  # type: ignore[arg-type]  # it has one more parameter in the stubs
        try:
            outcome = await peer.outcome((await peer.start("reveal"))["taskId"])
        finally:
            loop.set_task_factory(None)
        assert "ada of engines" in str(outcome)
    assert [(one.get("outcome"), one["subject"]) for one in records(log)] == [
        ("accepted", "ada"),
        (None, "ada"),
        ("ok", "ada"),
    ]


async def test_a_task_without_a_caller_does_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A task whose caller is lost ends with an error; it does not run as anonymous."""
    async with replica(None, reveal, works=True) as server:
        submit = service_of(server).engine.submit
        monkeypatch.setattr(service_of(server).engine, "submit", lambda task: submit(replace(task, origin=None)))
        peer = await DirectedPeer.connect(server, ADA)
        outcome = await peer.outcome((await peer.start("reveal"))["taskId"])
    assert outcome["error"]["code"] == -32603
    assert "nothing says who called it" in caplog.text


async def test_wrong_arguments_create_no_task(engine: str | None) -> None:
    """Whatever the engine and the design, the client gets the error at once."""
    async with replica(engine, works=True) as server:
        directed = await DirectedPeer.connect(server, ADA)
        reply = await directed.ask("tools/call", {"name": "halve", "arguments": {"part": "x"}})
        assert reply["result"]["isError"] is True
        requesting = await RequestingPeer.connect(server, ADA)
        error = await requesting.error("tools/call", {"name": "halve", "arguments": {"part": "x"}, "task": {}})
        assert error["code"] == -32602
        assert await service_of(server).engine.of(None, 0, 10) == ()


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


@pytest.mark.parametrize(
    "limits",
    [{"limits": {"max_concurrency": 1}}, {"toolsets": {"billing": {"max_concurrency": 1}}}],
    ids=["server", "tool set"],
)
async def test_runs_share_the_limits_of_server_and_tool_set(url: str, limits: dict[str, Any]) -> None:
    """Stored tasks of all tools wait for a slot, as long as it takes; their deadline does not run meanwhile."""
    running = most = 0
    release = asyncio.Event()

    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1
        return "done"

    @tool(task_support="optional")
    async def pay_now() -> str:
        """Pay."""
        return await work()

    @tool(task_support="optional")
    async def refund() -> str:
        """Pay back."""
        return await work()

    class Billing(containers.DeclarativeContainer):
        tools = providers.Object([pay_now, refund])

    class Container(containers.DeclarativeContainer):
        billing = providers.Container(Billing)

    flags = {"tasks": {"url": url}, "protocol": {"state_keys": [KEY]}, **limits}
    async with ServerHost(Container(), flags=flags) as server:
        await serve_tasks(server, works=True)
        peer = await DirectedPeer.connect(server, ADA)
        tasks = [await peer.start(name) for name in ("pay_now", "refund") * 3]
        await until(lambda: sum(call.deadline is None for call in server.handler.inflight) == len(tasks) - 1)
        direct = await Peer(server, principal=ADA).ask("tools/call", {"name": "refund", "arguments": {}})
        assert direct["result"]["_meta"]["axolotl/reason"] == "overloaded"
        release.set()
        assert ["done" in str(await peer.outcome(task["taskId"])) for task in tasks] == [True] * 6
    assert most == 1


async def test_a_run_of_an_idempotent_tool_waits_for_a_slot(url: str) -> None:
    """The call of its run is not that of the task, but waits for the same slots."""
    release = asyncio.Event()

    @tool(task_support="optional", idempotency=Idempotency(key="number"))
    async def pay_once(number: int) -> str:
        """Pay."""
        await release.wait()
        return f"paid {number}"

    flags = {"tasks": {"url": url}, "protocol": {"state_keys": [KEY]}, "limits": {"max_concurrency": 1}}
    async with ServerHost(container_of(pay_once), flags=flags) as server:
        await serve_tasks(server, works=True)
        peer = await DirectedPeer.connect(server, ADA)
        tasks = [await peer.start("pay_once", {"number": number}) for number in (1, 2)]
        await until(lambda: len(server.handler.inflight) == 2)
        release.set()
        outcomes = [await peer.outcome(task["taskId"]) for task in tasks]
    assert ["paid" in str(outcome) for outcome in outcomes] == [True, True]
