"""Tasks that start, ask, end, expire and are canceled at almost the same time."""

import asyncio
import gc
import json
import logging
import random
import weakref
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from axolotl_core import Context, Declined, ITool, Principal, ProtocolError, tool
from axolotl_server import ServerHost
from axolotl_server.extensions.tasks.engines.memory_engine import MemoryTaskEngine
from axolotl_server.extensions.tasks.engines.task_statements import Execute, Operation
from axolotl_server.extensions.tasks.requested_tasks import RequestedTasks
from tests.support.peers.session_client import Client
from tests.support.peers.task_hosts import service_of
from tests.support.peers.task_peers import DirectedPeer, Job, RequestingPeer, TaskPeer, records_of
from tests.support.peers.task_results import Waiting, begin
from tests.support.peers.wire import message
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

TASKS = 1000
SEED = 20260728
TERMINAL = {"completed", "failed", "cancelled"}


class Word(BaseModel):
    word: str


class Course(BaseModel):
    turns: int
    end: str


class Runner(ITool[Course, str]):
    """Yields to the event loop a number of times, and ends in one of many ways."""

    name = "run"
    task_support = "optional"
    timeout_seconds = 5

    async def execute(self, arguments: Course, context: Context) -> str:
        for turn in range(arguments.turns):
            context.report_progress(turn)
            await asyncio.sleep(0)
        match arguments.end:
            case "error":
                raise ProtocolError("error")
            case "ask":
                try:
                    return (await context.ask(Word, "Which?")).word
                except Declined:
                    return "declined"
        return arguments.end


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def requested_of(host: ServerHost) -> RequestedTasks:
    """Return the object that tracks requested tasks."""
    method: Any = host.assembly.eras.default_handshake.methods["tasks/result"]
    found = method.__self__
    assert isinstance(found, RequestedTasks)
    return found


def engine_of(host: ServerHost) -> MemoryTaskEngine:
    """Return the engine that keeps tasks in memory."""
    engine = service_of(host).engine
    assert isinstance(engine, MemoryTaskEngine)
    return engine


def assert_nothing_runs(host: ServerHost) -> None:
    engine, runner, deadlines = engine_of(host), service_of(host).runner, host.assembly.deadlines
    assert not host.handler.inflight
    assert not host.handler.inflight._by_share
    assert not engine._runs
    assert not engine._origins
    assert not requested_of(host)._followers
    assert (runner.checks, runner.running) == ({}, {})
    assert not deadlines._pauses
    assert not deadlines._timed
    assert engine.counts.open == {}
    assert engine._memory.read_now(stored_values()) == [(0,)]
    for record in records_of(host):
        assert (record.status in TERMINAL, record.questions) == (True, {})


def stored_values() -> Operation[Any]:
    """Count the calls, questions, answers and steps that are stored."""
    return (yield Execute("select (select count(*) from kept) + (select count(*) from tasks where call is not null)"))


def course(chance: random.Random, *ends: str) -> dict[str, Any]:
    return {"turns": chance.randrange(12), "end": chance.choice(ends)}


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
async def test_requested_tasks_leave_nothing_behind(seed: int) -> None:
    """A thousand requested tasks with random cancellation, fetching and answering each end once and leave nothing."""
    chance = random.Random(seed)
    before = asyncio.all_tasks()
    async with ServerHost(container_of(Runner()), flags={"tasks": {"maximum": TASKS}}) as host:
        peer = await RequestingPeer.connect(host)
        open_ids: list[str] = []
        for number in range(TASKS):
            params = {"name": "run", "arguments": course(chance, "done", "error", "ask"), "task": {}}
            begun = peer.send("tools/call", {**params, "_meta": {"progressToken": number}})
            open_ids.append((await peer.reply(begun))["result"]["task"]["taskId"])
            await turns(chance.randrange(3))
            victim = chance.choice(open_ids)
            match chance.randrange(5):
                case 0 | 1:
                    peer.send("tasks/cancel", {"taskId": victim})
                case 2:
                    waiting = peer.send("tasks/result", {"taskId": victim})
                    if chance.random() < 0.5:
                        peer.cancel(waiting)
            heard = peer.heard
            peer.unread.clear()
            for said in heard:
                if "id" in said and chance.random() < 0.6:
                    peer.answer(said, {"action": "accept", "content": {"word": "x"}})
        for task_id in open_ids:
            peer.send("tasks/cancel", {"taskId": task_id})
        await until(lambda: not host.handler.inflight and not engine_of(host)._runs)
        await peer.settle()
        assert_nothing_runs(host)
        connection = peer.transport._exchange.connection()
        assert (connection.pending_answers, connection.calls) == ({}, {})
        assert engine_of(host).kept == TASKS
        await peer.close()
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
async def test_directed_tasks_leave_nothing_behind(seed: int) -> None:
    """The same for tasks that the server creates."""
    chance = random.Random(seed)
    before = asyncio.all_tasks()
    async with ServerHost(container_of(Runner()), flags={"tasks": {"maximum": TASKS}}) as host:
        peer = DirectedPeer(host)
        ids: list[str] = []
        for _ in range(TASKS):
            ids.append((await peer.start("run", course(chance, "done", "error", "ask")))["taskId"])
            await turns(chance.randrange(3))
            victim = chance.choice(ids)
            match chance.randrange(4):
                case 0 | 1:
                    peer.send("tasks/cancel", {"taskId": victim})
                case 2:
                    answers = {"ask-1": {"action": "accept", "content": {"word": "x"}}}
                    peer.send("tasks/update", {"taskId": victim, "inputResponses": answers})
        for task_id in ids:
            peer.send("tasks/cancel", {"taskId": task_id})
        await until(lambda: not host.handler.inflight and not engine_of(host)._runs)
        await peer.settle()
        assert all("result" in reply for reply in peer.unread)
        assert_nothing_runs(host)
        await peer.close()
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
async def test_tasks_that_expire_leave_nothing_behind(seed: int) -> None:
    """A task that expires at any point leaves nothing behind."""
    chance = random.Random(seed)
    async with ServerHost(container_of(Runner(), Job())) as host:
        peer = await RequestingPeer.connect(host)
        waiting = []
        for number in range(200):
            name, arguments = chance.choice([("run", course(chance, "done", "ask")), ("job", {})])
            ttl = chance.choice([0, 1, 5, 20])
            params = {"name": name, "arguments": arguments, "task": {"ttl": ttl}, "_meta": {"progressToken": number}}
            task = (await peer.result("tools/call", params))["task"]
            waiting.append(peer.send("tasks/result", {"taskId": task["taskId"]}))
        await until(lambda: not engine_of(host).kept)
        replies = [await peer.reply(number) for number in waiting]
        await until(lambda: not host.handler.inflight and not engine_of(host)._runs)
        await peer.settle()
        assert all("result" in reply or reply["error"]["code"] == -32602 for reply in replies)
        assert_nothing_runs(host)


async def test_ids_of_requests_do_not_matter() -> None:
    """Tasks with the same request id are separate, and the id can be reused."""
    job = Job()
    async with ServerHost(container_of(job)) as host:
        peer = await RequestingPeer.connect(host)
        ids = set()
        for _ in range(3):
            peer.transport.send(message("tools/call", {"name": "job", "task": {}}, id=500))
            ids.add((await peer.reply(500))["result"]["task"]["taskId"])
        assert len(ids) == 3
        peer.transport.send(message("ping", id=500))
        assert await peer.reply(500) == {"jsonrpc": "2.0", "id": 500, "result": {}}


# Memory of ended tasks


class Luggage:
    """An object that a tool references while it runs."""


class Traveller:
    """Tools that reference such an object and end in various ways."""

    def __init__(self) -> None:
        self.luggage: list[weakref.ref[Luggage]] = []
        self.contexts: list[Context] = []

    def pack(self, context: Context) -> Luggage:
        luggage = Luggage()
        self.luggage.append(weakref.ref(luggage))
        context.cancellation.on_cancel(lambda reason, luggage=luggage: luggage)  # type: ignore[misc]
        return luggage

    @tool(task_support="optional")
    async def arrive(self, context: Context) -> str:
        """Return a result."""
        luggage = self.pack(context)
        return type(luggage).__name__

    @tool(task_support="optional")
    async def break_down(self, context: Context) -> str:
        """Raise a protocol error with a cause."""
        luggage = self.pack(context)
        try:
            raise RuntimeError(luggage)
        except RuntimeError as error:
            raise ProtocolError("broken down") from error

    @tool(task_support="optional")
    async def get_lost(self, context: Context) -> str:
        """Fail."""
        luggage = self.pack(context)
        raise RuntimeError(luggage)

    @tool(task_support="optional")
    async def wait(self, context: Context) -> str:
        """Ask."""
        luggage = self.pack(context)
        return f"{luggage} {(await context.ask(Word, 'Which?', key='word')).word}"


@pytest.fixture
def unlogged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable logging, because pytest keeps log records with their frames."""
    monkeypatch.setattr(logging.getLogger("axolotl"), "disabled", True)


WAYS: list[Callable[[Traveller], Any]] = [
    lambda traveller: traveller.arrive,
    lambda traveller: traveller.break_down,
    lambda traveller: traveller.get_lost,
    lambda traveller: traveller.wait,
]


def assert_garbage(traveller: Traveller) -> None:
    gc.collect()
    assert traveller.luggage
    assert [luggage() for luggage in traveller.luggage] == [None] * len(traveller.luggage)


@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize(("design", "read"), [(RequestingPeer, "tasks/result"), (DirectedPeer, "tasks/get")])
@pytest.mark.parametrize("way", WAYS)
async def test_a_task_holds_on_to_nothing(way: Callable[[Traveller], Any], design: type[TaskPeer], read: str) -> None:
    """Objects of a tool are released when its task ends, even if the result was read more than once."""
    traveller = Traveller()
    journey = way(traveller)
    async with ServerHost(container_of(journey)) as host:
        peer = await design.connect(host, Principal("ada"))
        task = await peer.start(journey.name)
        if journey.name == "wait":
            await peer.until(task["taskId"], "input_required")
            await peer.result("tasks/cancel", {"taskId": task["taskId"]})
        await peer.ask(read, {"taskId": task["taskId"]})  # waits for the end of a requested task
        await until(lambda: not host.handler.inflight)
        for _ in range(2):
            await peer.ask(read, {"taskId": task["taskId"]})
        await peer.settle()
        assert_garbage(traveller)
        await peer.close()


@pytest.mark.usefixtures("unlogged")
async def test_a_finished_task_holds_on_to_no_session() -> None:
    """The session of an ended task, and its waiting requests, are released when the client has left."""
    async with (
        serving(container_of(*[way(Traveller()) for way in WAYS[:3]])) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        client = Client(http, server.url)
        await client.begin()
        for name in ("arrive", "break_down", "get_lost"):
            waiting = Waiting(client, await begin(client, name))
            assert len(await waiting.rest()) == 1
        (session,) = server.app.sessions._by_id.values()
        known = weakref.ref(session)
        del session
        await client.end()
        assert engine_of(server.host).kept == 3
        await until(lambda: gc.collect() >= 0 and known() is None)


async def test_who_waits_no_longer_is_forgotten() -> None:
    """A task does not keep requests that stopped waiting."""
    job = Job()
    async with ServerHost(container_of(job)) as host:
        peer = await RequestingPeer.connect(host)
        task = await peer.start("job")
        for _ in range(50):
            waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
            peer.cancel(waiting)
        await peer.settle()
        (follower,) = requested_of(host)._followers.values()
        await until(lambda: not peer.transport._exchange._tasks)
        assert (follower._waiters, peer.transport._exchange.connection().calls) == ([], {})
        assert peer.unread == []


async def test_what_a_slow_client_is_not_told_is_not_kept() -> None:
    """A session without a stream keeps no messages of its tasks."""
    job = Job()
    async with (
        serving(container_of(job)) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        client = Client(http, server.url)
        await client.begin()
        await begin(client, "job", _meta={"progressToken": 1})
        await job.started.wait()
        assert job.context is not None
        for step in range(1000):
            job.context.report_progress(step)
            job.context.log("info", json.dumps({"step": step}))
        (session,) = server.app.sessions._by_id.values()
        (follower,) = requested_of(server.host)._followers.values()
        assert (session.has_had_streams, follower._questions, follower._waiters) == (False, {}, [])
        job.release.set()
