"""Servers with stored tasks: several replicas on one store, both designs, sealing and shutdown."""

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from pydantic import BaseModel

from axolotl_core import Context, Principal, tool
from axolotl_core.task_engine import TaskChange, TasksUnavailable
from axolotl_server import ServerHost
from axolotl_server.extensions.tasks import extension, task_service
from axolotl_server.extensions.tasks.engines.postgres_tasks import PostgresTasks
from axolotl_server.extensions.tasks.engines.sqlite_tasks import SqliteTasks
from axolotl_server.extensions.tasks.engines.stored_engine import StoredTaskEngine
from tests.support.peers.task_hosts import serve_tasks, service_of
from tests.support.peers.task_peers import DESIGNS, DirectedPeer, Job, RequestingPeer, TaskPeer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.servers.task_engines import KEY, STORES, store_of
from tests.support.tools import container_of

ADA = Principal("ada", "engines", frozenset({"write"}), frozenset({"admin"}), {"team": [1]})


class Amount(BaseModel):
    amount: int


@tool(task_support="optional", task_restart="resume")
async def order(context: Context) -> str:
    """Order something."""
    context.report_progress(1)
    amount = await context.ask(Amount, "How many?", key="amount")
    return f"{context.principal.subject} ordered {amount.amount}"


@tool(task_support="optional")
async def reveal(context: Context) -> str:
    """Return what is known about the caller."""
    who = context.principal
    return f"{who.subject} {who.tenant} {sorted(who.scopes)} {sorted(who.roles)} {dict(who.claims)}"


class Half(BaseModel):
    part: int


@tool(task_support="optional")
def halve(part: int) -> int:
    """Divide by two."""
    return part // 2


@tool(task_support="optional")
def mean() -> float:
    """Divide nothing by nothing."""
    return math.nan


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store."""
    with store_of(request.param) as place:
        assert place is not None
        yield place


@asynccontextmanager
async def replica(url: str, *tools: Any, works: bool = True, **settings: Any) -> AsyncIterator[ServerHost]:
    """A server on a store, which runs tasks or does not."""
    flags = {
        "tasks": {"url": url, "lease_seconds": 1.0, **settings},
        "protocol": {"state_keys": [KEY]},
    }
    async with ServerHost(container_of(*(tools or (order, reveal, halve))), flags=flags) as host:
        await serve_tasks(host, works=works)
        yield host


@pytest.fixture
def parks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks keep their slots only for a moment while they wait for an answer."""
    monkeypatch.setattr(extension, "HOLD_SECONDS", 0.05)


@pytest.fixture(params=DESIGNS.values(), ids=list(DESIGNS))
def design(request: pytest.FixtureRequest) -> type[TaskPeer]:
    """A client of each design."""
    kind: type[TaskPeer] = request.param
    return kind


def text_of(reply: Any) -> str:
    return str(reply["result"]["content"][0]["text"])


async def test_a_worker_runs_what_a_replica_accepts(url: str, design: type[TaskPeer]) -> None:
    """A task runs in another process than the one that accepted it, with the principal of its caller."""
    async with replica(url, works=False) as server, replica(url):
        peer = await design.connect(server, ADA)
        task = await peer.start("reveal")
        assert task["status"] == "working"
        text = text_of(await peer.outcome(task["taskId"]))
        assert text == "ada engines ['write'] ['admin'] {'team': [1]}"


async def test_an_output_that_is_no_json(url: str, design: type[TaskPeer], caplog: pytest.LogCaptureFixture) -> None:
    """A task whose output holds NaN fails as its call would."""
    async with replica(url, mean) as server:
        peer = await design.connect(server, ADA)
        reply = await peer.outcome((await peer.start("mean"))["taskId"])
    assert reply["result"]["isError"] is True
    assert text_of(reply).startswith("Tool mean failed. Reference: ")
    assert "which is not JSON: it is nan" in caplog.text


async def test_every_replica_knows_a_task(url: str, design: type[TaskPeer]) -> None:
    """A task can be read, answered and cancelled from every replica, by its owner only."""
    async with replica(url, works=False) as first, replica(url, works=False) as second, replica(url):
        peer, other = await design.connect(first, ADA), await design.connect(second, ADA)
        stranger = await design.connect(second, Principal("eve"))
        task_id = (await peer.start("order"))["taskId"]
        await other.until(task_id, "input_required")
        assert (await stranger.error("tasks/get", {"taskId": task_id}))["code"] == -32602
        assert (await stranger.error("tasks/cancel", {"taskId": task_id}))["code"] == -32602
        await other.result("tasks/cancel", {"taskId": task_id})
        assert await peer.status(task_id) == "cancelled"


async def test_a_question_is_answered_elsewhere(url: str, design: type[TaskPeer]) -> None:
    """The answer reaches the worker, whichever replica takes it."""
    async with replica(url, works=False) as server, replica(url):
        peer = await design.connect(server, ADA)
        task_id = (await peer.start("order"))["taskId"]
        await peer.respond(task_id, {"action": "accept", "content": {"amount": 3}}, key="amount")
        assert text_of(await peer.outcome(task_id)) == "ada ordered 3"


async def test_a_question_is_not_repeated_while_its_answer_is_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has answered is not asked again, if the store is unreachable at first and the task changes."""
    async with replica(url, works=False) as server, replica(url):
        engine = service_of(server).engine
        store, attempts, reachable = engine.answer, asyncio.Queue[str](), asyncio.Event()

        async def answer(task_id: str, owner: bytes, answers: Any) -> frozenset[str]:
            attempts.put_nowait(task_id)
            if attempts.qsize() == 1:
                raise TasksUnavailable("the store is unreachable")
            await reachable.wait()
            return await store(task_id, owner, answers)

        monkeypatch.setattr(engine, "answer", answer)
        peer = await RequestingPeer.connect(server, ADA)
        task_id = (await peer.start("order"))["taskId"]
        await peer.respond(task_id, {"action": "accept", "content": {"amount": 3}}, key="amount")
        await until(lambda: attempts.qsize() == 2)
        record = await engine.find(task_id, None)
        assert record is not None
        assert record.status == "input_required"
        service_of(server).task_changed(TaskChange(record, is_status=False))
        reachable.set()
        assert text_of(await peer.outcome(task_id)) == "ada ordered 3"
        assert [said for said in peer.heard if said["method"] == "elicitation/create"] == []


async def test_an_answer_that_only_the_code_can_check(url: str) -> None:
    """An answer that does not fit is asked for again, if another process asked."""
    async with replica(url, works=False) as server, replica(url):
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("order"))["taskId"]
        await peer.respond(task_id, {"action": "accept", "content": {"amount": "many"}}, key="amount")
        await peer.respond(task_id, {"action": "accept", "content": {"amount": 2}}, key="amount")
        assert text_of(await peer.outcome(task_id)) == "ada ordered 2"


async def test_progress_reaches_the_client(url: str) -> None:
    """Messages of a task that runs elsewhere reach the client that started it."""
    async with replica(url, works=False) as server, replica(url):
        peer = await RequestingPeer.connect(server, ADA)
        await peer.start("order", _meta={"progressToken": 7})
        assert (await peer.hear("notifications/progress"))["params"]["progressToken"] == 7
        assert (await peer.hear("elicitation/create"))["params"]["message"] == "How many?"


async def test_arguments_are_checked_first(url: str) -> None:
    """Wrong arguments create no task: the client gets the error at once."""
    async with replica(url, works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        reply = await peer.ask("tools/call", {"name": "halve", "arguments": {"part": "x"}})
        assert reply["result"]["isError"] is True
        assert await service_of(server).engine.of(None, 0, 10) == ()


@pytest.mark.usefixtures("parks_soon")
async def test_a_parked_task_frees_its_slot(url: str) -> None:
    """A task that waits long is parked, and runs again from the start with its answers."""
    runs: list[str] = []

    @tool(task_support="optional", task_restart="resume")
    async def pick(context: Context) -> str:
        """Ask twice."""
        runs.append("run")
        one = await context.ask(Amount, "One?", key="one")
        two = await context.ask(Amount, "Two?", key="two")
        return f"{one.amount} {two.amount}"

    async with (
        replica(url, pick, works=False) as server,
        replica(url, pick, concurrency=1) as worker,
    ):
        peer = await DirectedPeer.connect(server, ADA)
        first, second = (await peer.start("pick"))["taskId"], (await peer.start("pick"))["taskId"]
        await peer.until(first, "input_required")
        await peer.until(second, "input_required")  # the first has freed the only slot
        await until(lambda: not worker.handler.inflight)
        for key in ("one", "two"):
            await peer.until(first, "input_required")
            await peer.respond(first, {"action": "accept", "content": {"amount": 4}}, key=key)
        assert text_of(await peer.outcome(first)) == "4 4"
        assert len(runs) >= 3


@pytest.mark.usefixtures("parks_soon")
async def test_a_parked_task_is_answered_by_a_response(url: str) -> None:
    """The question of a parked task stays open for clients that answer it with a response."""
    async with replica(url, works=False) as server, replica(url) as worker:
        peer = await RequestingPeer.connect(server, ADA)
        task_id = (await peer.start("order"))["taskId"]
        question = await peer.hear("elicitation/create")
        await until(lambda: not worker.handler.inflight)
        peer.answer(question, {"action": "accept", "content": {"amount": 5}})
        assert text_of(await peer.outcome(task_id)) == "ada ordered 5"


async def test_a_server_that_stops_returns_its_tasks(url: str) -> None:
    """A task of a tool that may restart goes back into the queue, and another worker completes it."""
    job = Job(task_restart="resume")
    async with replica(url, Job(), works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        async with replica(url, job):
            task_id = (await peer.start("job"))["taskId"]
            await job.started.wait()
        assert job.cancelled.is_set()
        assert await peer.status(task_id) == "working"
        again = Job(task_restart="resume")
        again.release.set()
        async with replica(url, again):
            assert text_of(await peer.outcome(task_id)) == "done"


async def test_a_task_whose_code_takes_time_to_stop(url: str) -> None:
    """A task goes back into the queue, although its call is abandoned before the code has ended."""
    started, seen = asyncio.Event(), []

    @tool(task_support="required", task_restart="resume")
    async def job() -> str:
        """Ends late if it is stopped."""
        if started.is_set():
            return "done"
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await until(lambda: len(worker.handler.inflight.zombies) == 1)
            seen.extend([await peer.status(task_id) for _ in range(10)])
        raise AssertionError

    async with replica(url, job, works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        async with replica(url, job) as worker:
            task_id = (await peer.start("job"))["taskId"]
            await started.wait()
        assert [*seen, await peer.status(task_id)] == ["working"] * 11
        async with replica(url, job):
            assert text_of(await peer.outcome(task_id)) == "done"


async def test_tasks_for_which_there_is_no_room(url: str) -> None:
    """Tasks that a server takes from the queue together, but cannot run together, wait; none of them is refused."""

    @tool(task_support="required")
    async def job() -> str:
        """Gives the others a chance to begin."""
        await asyncio.sleep(0)
        return "done"

    async with replica(url, job, works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        tasks = [await peer.start("job") for _ in range(6)]
        flags = {"tasks": {"url": url}, "protocol": {"state_keys": [KEY]}, "limits": {"max_inflight": 2}}
        async with ServerHost(container_of(job), flags=flags) as worker:
            await serve_tasks(worker, works=True)
            assert [text_of(await peer.outcome(task["taskId"])) for task in tasks] == ["done"] * 6


@pytest.mark.usefixtures("parks_soon")
async def test_a_parked_run_that_ends_late(url: str) -> None:
    """Code that tidies up after it was parked does not disturb the next run, which can still be stopped."""
    parked, tidied, again, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(task_support="required", task_restart="resume")
    async def job(context: Context) -> str:
        """Ends late if it is parked."""
        try:
            await context.ask(Amount, "How many?", key="amount")
            again.set()
            await asyncio.Event().wait()
        finally:
            if again.is_set():
                stopped.set()
            else:
                parked.set()
                await tidied.wait()
        raise AssertionError

    async with replica(url, job) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("job"))["taskId"]
        await parked.wait()
        await peer.respond(task_id, {"action": "accept", "content": {"amount": 3}}, key="amount")
        await again.wait()
        tidied.set()
        await until(lambda: len(server.handler.inflight) == 1)
        await peer.result("tasks/cancel", {"taskId": task_id})
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stopped.wait()


async def test_a_queue_that_fails_is_read_again(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected error of the queue is logged, and later tasks run."""
    failures, kind = [RuntimeError("a surprise")], PostgresTasks if url.startswith("postgres") else SqliteTasks
    make = kind.worker

    def fail_first(self: Any, *arguments: Any) -> Any:
        worker = make(self, *arguments)
        if failures:
            monkeypatch.setattr(worker, "work", AsyncMock(side_effect=failures.pop()))
        return worker

    monkeypatch.setattr(kind, "worker", fail_first)
    monkeypatch.setattr(task_service, "_RETRY_SECONDS", 0.01)
    async with replica(url) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("halve", {"part": 4}))["taskId"]
        assert text_of(await peer.outcome(task_id)) == "2"
    assert "taking tasks from the queue failed" in caplog.text


async def test_a_tool_that_must_not_restart(url: str) -> None:
    """A task of any other tool ends with its worker."""
    job = Job()
    async with replica(url, Job(), works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        async with replica(url, job):
            task_id = (await peer.start("job"))["taskId"]
            await job.started.wait()
        outcome = await peer.outcome(task_id)
        assert outcome["result"]["_meta"]["axolotl/reason"] == "shutdown"


async def test_a_run_that_waits_for_a_slot_has_not_begun(url: str) -> None:
    """A server that stops returns such a task to the queue, even if the tool must not restart."""
    job = Job()
    async with replica(url, Job(), works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        flags = {"tasks": {"url": url}, "protocol": {"state_keys": [KEY]}, "limits": {"max_concurrency": 1}}
        async with ServerHost(container_of(job), flags=flags) as worker:
            await serve_tasks(worker, works=True)
            begun = (await peer.start("job"))["taskId"]
            await job.started.wait()
            waiting = (await peer.start("job"))["taskId"]
            await until(lambda: sum(call.deadline is None for call in worker.handler.inflight) == 1)
        assert (await peer.outcome(begun))["result"]["_meta"]["axolotl/reason"] == "shutdown"
        assert await peer.status(waiting) == "working"
        again = Job()
        again.release.set()
        async with replica(url, again):
            assert text_of(await peer.outcome(waiting)) == "done"


async def test_an_approval_cannot_be_put_back(tmp_path: Path) -> None:
    """A call that is put back into the store with its answer asks again, and only a new answer is an approval."""
    paid, paying, release = 0, asyncio.Event(), asyncio.Event()

    @tool(task_support="required", requires_approval=True)
    async def pay() -> str:
        """Pay."""
        nonlocal paid
        paid += 1
        paying.set()
        await release.wait()
        return "paid"

    yes = {"action": "accept", "content": {"approve": True}}
    async with replica(f"sqlite:///{tmp_path}/tasks.db", pay) as server:
        engine = service_of(server).engine
        assert isinstance(engine, StoredTaskEngine)
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("pay"))["taskId"]
        await peer.respond(task_id, yes, key="axolotl/approval")
        await paying.wait()
        with closing(sqlite3.connect(tmp_path / "tasks.db", isolation_level=None)) as store:
            task = store.execute("select * from tasks").fetchone()
            [kept] = store.execute("select * from kept").fetchall()
            release.set()
            await peer.outcome(task_id)
            for run in (0, 1):
                await put_back(store, engine, task, kept, run)
                await peer.until(task_id, "input_required")
                store.execute("insert or replace into kept values (?, ?, ?, ?)", kept)
                await engine._compare_runs(engine._runs)
                assert (await peer.status(task_id), paid) == ("input_required", 1)
                await peer.result("tasks/cancel", {"taskId": task_id})
            await put_back(store, engine, task, kept, 1)
        await peer.respond(task_id, yes, key="axolotl/approval")
        assert text_of(await peer.outcome(task_id)) == "paid"
    assert paid == 2


async def put_back(store: sqlite3.Connection, engine: StoredTaskEngine, task: Any, kept: Any, run: int) -> None:
    """Restore a task and an answer as they were, to be run next."""
    store.execute(f"insert or replace into tasks values ({', '.join('?' * len(task))})", task)
    store.execute("update tasks set state = 'queued', run = ?, due_at = 0", (run,))
    store.execute("insert or replace into kept values (?, ?, ?, ?)", kept)
    await engine.tidy()


async def test_nothing_is_stored_in_clear_text(tmp_path: Path) -> None:
    """Arguments, principals, questions, answers and results cannot be read in the file."""

    @tool(task_support="optional")
    async def whisper(secret: str, context: Context) -> str:
        """Return a secret."""
        await context.ask(Amount, "a-question-text", key="amount")
        return f"a-result-of-{secret}"

    url = f"sqlite:///{tmp_path}/tasks.db"
    async with replica(url, whisper) as server:
        peer = await DirectedPeer.connect(server, Principal("a-subject-name"))
        task_id = (await peer.start("whisper", {"secret": "an-argument"}))["taskId"]
        await peer.until(task_id, "input_required")
        await asyncio.to_thread(_refuse_words, tmp_path)
        await peer.respond(task_id, {"action": "accept", "content": {"amount": 77}}, key="amount")
        await peer.outcome(task_id)
    _refuse_words(tmp_path)


def _refuse_words(directory: Path) -> None:
    for path in directory.glob("tasks.db*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [word for word in (b"an-argument", b"a-question", b"a-result", b"a-subject") if word in data]


@pytest.mark.parametrize("column", ["owner", "tool", "call", "outcome", "message", "expires_at"])
@pytest.mark.parametrize("change", ["swapped", "truncated", "pickled"])
async def test_changed_rows_cannot_be_used(tmp_path: Path, column: str, change: str) -> None:
    """A value that was swapped, truncated or replaced fails the task and nothing else."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    async with replica(url, works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        eve = await DirectedPeer.connect(server, Principal("eve"))
        mine = (await peer.start("reveal"))["taskId"]
        hers = (await eve.start("order"))["taskId"]
        if column in ("outcome", "message"):
            for one, task_id in ((peer, mine), (eve, hers)):
                await one.result("tasks/cancel", {"taskId": task_id})
        _change(tmp_path / "tasks.db", column, change, mine, hers)
        async with replica(url):
            for one, task_id in ((peer, mine), (eve, hers)):
                reply = await one.ask("tasks/get", {"taskId": task_id})
                assert "ada engines" not in str(reply if one is eve else "")
            await until_idle(server)
        assert "ada engines" not in str(await eve.ask("tasks/get", {"taskId": mine}))
        assert "ada engines" not in str(await eve.ask("tasks/get", {"taskId": hers}))


async def until_idle(server: ServerHost) -> None:
    await until(lambda: not server.handler.inflight)


def _change(path: Path, column: str, change: str, mine: str, hers: str) -> None:
    pickled = b"cos\nsystem\n(S'touch /tmp/axolotl-was-here'\ntR."
    with closing(sqlite3.connect(path)) as database:
        values = [
            database.execute(f"select {column} from tasks where id = ?", (one,)).fetchone()[0] for one in (mine, hers)
        ]
        for task_id, value in zip((mine, hers), reversed(values), strict=True):
            changed: Any = value
            if change == "truncated" and isinstance(value, bytes | str):
                changed = value[:-3]
            elif change == "pickled":
                changed = pickled
            database.execute(f"update tasks set {column} = ? where id = ?", (changed, task_id))
        database.commit()


@pytest.mark.parametrize("is_link", [True, False])
async def test_only_our_own_sockets_are_removed(tmp_path: Path, is_link: bool) -> None:
    """A directory for sockets that is a link is not used, and nothing but sockets is deleted from our own."""
    wake = tmp_path / "tasks.db-wake"
    documents = tmp_path / "documents" if is_link else wake
    documents.mkdir()
    (documents / "letter").write_text("dear", encoding="utf-8")
    if is_link:
        wake.symlink_to(documents)
    async with replica(f"sqlite:///{tmp_path}/tasks.db") as server:
        peer = await DirectedPeer.connect(server, ADA)
        assert "4" in str(await peer.outcome((await peer.start("halve", {"part": 8}))["taskId"]))
        assert ([path.name for path in documents.iterdir()] == ["letter"]) is is_link
    assert [path.name for path in documents.iterdir()] == ["letter"]
