"""Stored tasks in hard times: workers are killed, paused and stopped, and the store restarts, with real processes."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from axolotl_core import Principal
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server import ServerHost
from tests.support.containers.note_tools import few, hold, lines_of, note, wait
from tests.support.peers.task_hosts import serve_tasks, service_of
from tests.support.peers.task_peers import DirectedPeer
from tests.support.servers.task_engines import KEY, STORES, prepare_store, store_of
from tests.support.stores.postgres_server import PostgresServer, postgres_database, require_postgres, shared_postgres
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

FULL = bool(os.environ.get("AXOLOTL_HARD_TIMES"))
"""Whether all tests run, with large numbers."""
ONLY_IN_FULL = pytest.mark.skipif(not FULL, reason="set AXOLOTL_HARD_TIMES=1; test_task_workers has a short form")
CALLS = 2000 if FULL else 60
QUESTIONS = 300 if FULL else 30
CANCELLATIONS = 300 if FULL else 40
RUNS = 40 if FULL else 20
LEASE_SECONDS = 1.5
ROOT = Path(__file__).parents[3]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store."""
    with store_of(request.param) as place:
        assert place is not None
        yield place


PARKING_SOON = (
    "from axolotl_server.extensions.tasks import extension; extension.HOLD_SECONDS = 0.05; "
    "from axolotl_cli.__main__ import main; main()"
)


class Workers:
    """Processes that run the tasks of a store."""

    def __init__(self, url: str, *, park_soon: bool, **settings: Any) -> None:
        self._start = ("-c", PARKING_SOON) if park_soon else ("-m", "axolotl_cli")
        self._environment = {
            **os.environ,
            "AXOLOTL_TASKS__URL": url,
            "AXOLOTL_TASKS__LEASE_SECONDS": str(LEASE_SECONDS),
            "AXOLOTL_PROTOCOL__STATE_KEYS": f'["{KEY}"]',
            "AXOLOTL_HTTP__DRAIN_SECONDS": "0.3",
            **{f"AXOLOTL_TASKS__{name.upper()}": str(value) for name, value in settings.items()},
        }
        self.running: list[asyncio.subprocess.Process] = []

    async def start(self) -> asyncio.subprocess.Process:
        """Start a worker, and wait until it takes tasks."""
        command = [sys.executable, *self._start, "worker", "tests/support/containers/note_tools.py:Container"]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=self._environment, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
        )
        self.running.append(process)
        assert process.stderr is not None
        said = []
        while line := await process.stderr.readline():
            said.append(line)
            if b"running tasks of" in line:
                self._drain(process.stderr)
                return process
        raise AssertionError(b"".join(said).decode())

    def _drain(self, stream: asyncio.StreamReader) -> None:
        self._reading = asyncio.ensure_future(stream.read())

    async def kill(self, process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> None:
        """End a worker."""
        self.running.remove(process)
        process.send_signal(number)
        await process.wait()

    async def close(self) -> None:
        """Kill all workers."""
        for process in tuple(self.running):
            await self.kill(process)


@asynccontextmanager
async def workers(url: str, number: int, *, park_soon: bool = False, **settings: Any) -> AsyncIterator[Workers]:
    """Start workers, and kill those that are left at the end."""
    group = Workers(url, park_soon=park_soon, **settings)
    try:
        await asyncio.gather(*(group.start() for _ in range(number)))
        yield group
    finally:
        await group.close()


@asynccontextmanager
async def replica(url: str) -> AsyncIterator[ServerHost]:
    """A server that submits tasks and runs none."""
    flags = {
        "tasks": {"url": url, "lease_seconds": LEASE_SECONDS, "maximum": 10_000},
        "limits": {"share_per_caller": 1},
        "protocol": {"state_keys": [KEY]},
    }
    async with ServerHost(container_of(note, hold, few, wait), flags=flags) as host:
        await serve_tasks(host, works=False)
        yield host


@asynccontextmanager
async def client(url: str) -> AsyncIterator[DirectedPeer]:
    """A client of a server that submits tasks and runs none."""
    async with replica(url) as host:
        yield await DirectedPeer.connect(host, Principal("ada"))


async def ended(peer: DirectedPeer, *task_ids: str, seconds: float = 60.0) -> list[Any]:
    """Wait for the ends of tasks."""
    states = []
    async with asyncio.timeout(seconds):
        for task_id in task_ids:
            while True:
                state = await peer.result("tasks/get", {"taskId": task_id})
                if state["status"] not in ("working", "input_required"):
                    states.append(state)
                    break
                await asyncio.sleep(0.02)  # sleeps: another process ends the task
    return states


async def start(peer: DirectedPeer, name: str, count: int, **arguments: Any) -> list[str]:
    return [(await peer.start(name, {"number": number, **arguments}))["taskId"] for number in range(count)]


async def test_workers_are_killed(url: str, tmp_path: Path) -> None:
    """All calls complete although workers are killed again and again; only interrupted calls run again."""
    notes = tmp_path / "notes"
    async with client(url) as peer, workers(url, 2, concurrency=10) as group:
        ids = await start(peer, "note", CALLS, path=str(notes), seconds=0.02)
        kills = 0
        while len([line for line in lines_of(notes) if line.startswith("end")]) < CALLS and kills < CALLS // 20:
            await asyncio.sleep(0.7)  # sleeps: the time between two kills
            await group.kill(random.Random(kills).choice(group.running))
            await group.start()
            kills += 1
        states = await ended(peer, *ids, seconds=120)
    assert Counter(state["status"] for state in states) == {"completed": CALLS}
    begun = Counter(line.split()[1] for line in lines_of(notes) if line.startswith("begin"))
    repeated = sum(count - 1 for count in begun.values())
    assert repeated <= kills * 10


@ONLY_IN_FULL
async def test_a_limit_is_kept(url: str, tmp_path: Path) -> None:
    """A tool that may run three times at once does not run more often on two workers."""
    notes = tmp_path / "notes"
    async with client(url) as peer, workers(url, 2):
        await ended(peer, *await start(peer, "few", 40, path=str(notes)))
    running = most = 0
    for line in lines_of(notes):
        running += 1 if line == "begin" else -1
        most = max(most, running)
    assert most <= 3


@ONLY_IN_FULL
async def test_tasks_are_cancelled(url: str, tmp_path: Path) -> None:
    """Tasks that are cancelled at random moments are cancelled, and none of them runs to its end."""
    notes, chance = tmp_path / "notes", random.Random(7)
    async with client(url) as peer, workers(url, 2):
        ids = await start(peer, "note", CANCELLATIONS, path=str(notes), seconds=30)
        chance.shuffle(ids)
        for task_id in ids:
            await asyncio.sleep(chance.random() * 0.01)  # sleeps: a random moment
            await peer.result("tasks/cancel", {"taskId": task_id})
        states = await ended(peer, *ids)
    assert Counter(state["status"] for state in states) == {"cancelled": CANCELLATIONS}
    assert not [line for line in lines_of(notes) if line.startswith("end")]


@ONLY_IN_FULL
async def test_code_stops_soon_after_a_cancellation(url: str, tmp_path: Path) -> None:
    """From the cancellation in one process until the code stops in another one, 99 of 100 times at most 100 ms pass."""
    notes = tmp_path / "notes"
    cancelled: dict[str, float] = {}
    async with client(url) as peer, workers(url, 1, concurrency=CANCELLATIONS):
        ids = await start(peer, "hold", CANCELLATIONS, path=str(notes))
        await until_lines(notes, CANCELLATIONS)
        for number, task_id in enumerate(ids):
            cancelled[str(number)] = time.monotonic()
            await peer.result("tasks/cancel", {"taskId": task_id})
            await until_lines(notes, CANCELLATIONS + number + 1)
    assert_soon(notes, cancelled)


@ONLY_IN_FULL
async def test_code_stops_soon_after_a_burst_of_cancellations(url: str, tmp_path: Path) -> None:
    """If many tasks are cancelled at once, each stops soon after its cancellation was acknowledged."""
    notes = tmp_path / "notes"
    acknowledged: dict[str, float] = {}
    async with replica(url) as host, workers(url, 1, concurrency=CANCELLATIONS):
        peer = await DirectedPeer.connect(host, Principal("ada"))
        ids = await start(peer, "hold", CANCELLATIONS, path=str(notes))
        await until_lines(notes, CANCELLATIONS)

        async def cancel(number: int, task_id: str) -> None:
            await service_of(host).engine.cancel(task_id, None, CancelReason.CLIENT)
            acknowledged[str(number)] = time.monotonic()

        await asyncio.gather(*(cancel(number, task_id) for number, task_id in enumerate(ids)))
        await until_lines(notes, 2 * CANCELLATIONS)
    assert_soon(notes, acknowledged)


def assert_soon(notes: Path, cancelled: Mapping[str, float]) -> None:
    """Compare the times at which code stopped with those at which it was cancelled."""
    stops = [line.split()[1:] for line in lines_of(notes) if line.startswith("stop")]
    delays = sorted(float(moment) - cancelled[number] for number, moment in stops)
    assert len(delays) == CANCELLATIONS
    assert delays[len(delays) * 99 // 100 - 1] <= 0.1, delays[-10:]


async def test_parked_questions_survive_all_workers(url: str, tmp_path: Path) -> None:
    """Questions stay open when all workers die; answered later, each task continues once and repeats no step."""
    notes = tmp_path / "notes"
    async with client(url) as peer:
        async with workers(url, 1, park_soon=True) as group:
            ids = await start(peer, "wait", QUESTIONS, path=str(notes))
            for task_id in ids:
                await peer.until(task_id, "input_required")
            for process in tuple(group.running):
                await group.kill(process)
        for task_id in ids:
            assert "result" in await peer.update(task_id, word={"action": "accept", "content": {"word": "newt"}})
        async with workers(url, 1):
            states = await ended(peer, *ids)
    assert Counter(state["status"] for state in states) == {"completed": QUESTIONS}
    once = [line for number in range(QUESTIONS) for line in (f"charge {number}", f"{number} newt")]
    assert Counter(lines_of(notes)) == Counter(once)


async def test_a_zombie_writes_nothing(url: str, tmp_path: Path) -> None:
    """A worker that is paused beyond its lease is replaced; when it continues, its result does not count."""
    notes = tmp_path / "notes"
    async with client(url) as peer, workers(url, 1) as group:
        (zombie,) = group.running
        (task_id,) = await start(peer, "note", 1, path=str(notes), seconds=0.5)
        await until_lines(notes, 1)
        zombie.send_signal(signal.SIGSTOP)
        await group.start()
        (state,) = await ended(peer, task_id)
        zombie.send_signal(signal.SIGCONT)
        await group.kill(zombie, signal.SIGTERM)  # it ends when it has tried to write
        (again,) = await ended(peer, task_id)
    assert (state["status"], again["lastUpdatedAt"]) == ("completed", state["lastUpdatedAt"])


async def test_a_worker_drains(url: str, tmp_path: Path) -> None:
    """After SIGTERM, tasks that take too long go back to the queue at once, and another worker completes them."""
    notes = tmp_path / "notes"
    async with client(url) as peer, workers(url, 1) as group:
        (first,) = group.running
        ids = await start(peer, "note", 5, path=str(notes), seconds=2)
        await until_lines(notes, 5)
        await group.kill(first, signal.SIGTERM)
        assert first.returncode == 0
        await group.start()
        states = await ended(peer, *ids)
    assert Counter(state["status"] for state in states) == {"completed": 5}


@ONLY_IN_FULL
async def test_workers_drain_under_load(url: str, tmp_path: Path) -> None:
    """Workers are stopped one after another while all of them are busy; nothing waits for a lease, and all complete."""
    notes, count = tmp_path / "notes", 200
    async with client(url) as peer, workers(url, 2, concurrency=10, lease_seconds=60) as group:
        ids = await start(peer, "note", count, path=str(notes), seconds=0.5)
        for _ in range(4):
            await asyncio.sleep(0.7)  # sleeps: the time between two stops
            process = group.running[0]
            await group.kill(process, signal.SIGTERM)
            assert process.returncode == 0
            await group.start()
        states = await ended(peer, *ids, seconds=50)
    assert Counter(state["status"] for state in states) == {"completed": count}
    begun = Counter(line.split()[1] for line in lines_of(notes) if line.startswith("begin"))
    assert sum(begun.values()) - count <= 4 * 10


async def until_lines(path: Path, count: int) -> None:
    async with asyncio.timeout(30):
        while True:
            if len(lines_of(path)) >= count:
                return
            await asyncio.sleep(0.01)  # sleeps: another process writes the file


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A Postgres server that a test may stop."""
    require_postgres()
    server = PostgresServer(is_durable=True)
    server.start()
    yield server
    server.remove()


async def test_the_store_restarts(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """Calls that run while the database restarts end once, and none of them is started again."""
    notes = tmp_path / "notes"
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_database(own_postgres))
        prepare_store(url)
        peer = await stack.enter_async_context(client(url))
        await stack.enter_async_context(workers(url, 1, lease_seconds=20))
        ids = await start(peer, "note", RUNS, path=str(notes), seconds=3)
        await until_lines(notes, RUNS)
        await asyncio.to_thread(own_postgres.stop)
        refused = await peer.ask("tools/call", {"name": "note", "arguments": {"number": 0, "path": str(notes)}})
        assert refused["result"]["_meta"]["axolotl/reason"] == "tasks_unavailable"
        assert (await peer.error("tasks/get", {"taskId": ids[0]}))["code"] == -32603
        await asyncio.to_thread(own_postgres.start)
        states = await ended(peer, *ids)
    assert Counter(state["status"] for state in states) == {"completed": RUNS}
    assert Counter(line.split()[0] for line in lines_of(notes)) == {"begin": RUNS, "end": RUNS}


async def test_a_lost_listener_is_replaced(url: str, tmp_path: Path) -> None:
    """After all connections were cut, or all sockets deleted, the next cancellation stops its code within 2 s."""
    notes = tmp_path / "notes"
    async with client(url) as peer, workers(url, 1, lease_seconds=20):
        (task_id,) = await start(peer, "hold", 1, path=str(notes))
        await until_lines(notes, 1)
        await asyncio.to_thread(cut_connections, url)
        await asyncio.sleep(0.5)  # sleeps: the processes need a moment to connect again
        await peer.result("tasks/cancel", {"taskId": task_id})
        async with asyncio.timeout(2):
            await until_lines(notes, 2)


def cut_connections(url: str) -> None:
    """Cut what processes hear of changes by."""
    if url.startswith("sqlite"):
        for path in Path(f"{url.removeprefix('sqlite:///')}-wake").iterdir():
            path.unlink()
        return
    name = urlsplit(url).path.removeprefix("/")
    cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'axolotl'"
    shared_postgres().psql(f"{cut} and datname = '{name}'")
