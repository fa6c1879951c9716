"""Stored tasks: throughput of one worker, time until a task begins, and the cost of an idle worker."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvloop

from axolotl_cli.runtime import tune_garbage_collector
from axolotl_server import connect
from axolotl_server.client.client import InProcessClient
from benchmarks.errors import BenchmarkError, NotInstalled
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series, goal
from benchmarks.servers.task_functions import Container
from tests.support.stores.postgres_server import PostgresServer, program

_TASKS: Final = 4000
_SINGLE: Final = 60
_SUBMITTERS: Final = 64
_IDLE_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.01
_KEY: Final = "a key of the benchmark, long enough"
_EXTENSION: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def _settings(url: str) -> dict[str, Any]:
    tasks = {"url": url, "run_here": False, "maximum": 1_000_000}
    return {"tasks": tasks, "limits": {"share_per_caller": 1}, "protocol": {"state_keys": [_KEY]}}


@contextmanager
def _worker(url: str) -> Iterator[int]:
    environment = {**os.environ, "AXOLOTL_TASKS__URL": url, "AXOLOTL_PROTOCOL__STATE_KEYS": f'["{_KEY}"]'}
    command = [sys.executable, "-m", "axolotl_cli", "worker", "benchmarks.servers.task_functions:Container"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, b"")
    reading: threading.Thread | None = None
    try:
        if not any(b"running tasks of" in line for line in lines):
            raise BenchmarkError("the worker did not start")
        reading = threading.Thread(target=list, args=(lines,), daemon=True)
        reading.start()  # or the worker waits for somebody who reads its log
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if reading is not None:
            reading.join()
        process.stderr.close()


async def _finished(client: InProcessClient, task_id: str) -> Any:
    while True:
        state = await client.request("tasks/get", {"taskId": task_id})
        if state["status"] != "working":
            return state
        await asyncio.sleep(_POLL_SECONDS)


async def _submit(client: InProcessClient) -> str:
    return str((await client.request("tools/call", {"name": "begun"}))["taskId"])


async def _measure(url: str, count: int) -> Sample:
    async with connect(Container(), settings=_settings(url), capabilities=_EXTENSION) as client:
        tune_garbage_collector()  # as a server does
        waits = []
        for _ in range(_SINGLE):
            before = time.time()
            state = await _finished(client, await _submit(client))
            waits.append(float(state["result"]["structuredContent"]) - before)
        ids: list[str] = []
        numbers = iter(range(count))

        async def submit() -> None:
            for _ in numbers:
                ids.append(await _submit(client))  # noqa: PERF401 - an async comprehension would wait for all

        began = time.time()
        await asyncio.gather(*(submit() for _ in range(_SUBMITTERS)))
        # The last ones come first: reading the results of the others then takes no time from the worker.
        ended = [await _finished(client, task_id) for task_id in reversed(ids)]
        assert all(state["status"] == "completed" for state in ended)
        seconds = max(datetime.fromisoformat(state["lastUpdatedAt"]).timestamp() for state in ended) - began
    return {"rate": count / seconds, "begin": median(waits) * 1000}


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _idle_percent(process: int) -> float:
    before = _cpu_seconds(process)
    time.sleep(_IDLE_SECONDS)
    return (_cpu_seconds(process) - before) / _IDLE_SECONDS * 100


@contextmanager
def _sqlite() -> Iterator[str]:
    with TemporaryDirectory() as directory:
        yield f"sqlite:///{directory}/tasks.db"


@contextmanager
def _postgres() -> Iterator[str]:
    if program("postgres") is None or program("psql") is None:
        raise NotInstalled("not installed")
    server = PostgresServer(is_durable=True)
    try:
        server.start()
        environment = {**os.environ, "AXOLOTL_TASKS__URL": server.url()}
        environment["AXOLOTL_PROTOCOL__STATE_KEYS"] = f'["{_KEY}"]'
        prepare = [sys.executable, "-m", "axolotl_cli", "tasks", "prepare"]
        subprocess.run(prepare, env=environment, check=True, capture_output=True)
        yield server.url()
    finally:
        server.remove()


def _series(name: str, store: Any) -> Series:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with ExitStack() as stack:
            url = stack.enter_context(store())
            process = stack.enter_context(_worker(url))

            def measure() -> Sample:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `axolotl serve` does
                    sample = runner.run(_measure(url, scale.calls(_TASKS)))
                return {**sample, "idle": _idle_percent(process)}

            yield measure

    return Series(name, opened)


SCENARIO = Scenario(
    name="tasks",
    group="workers",
    summary="stored tasks on SQLite and Postgres: one worker while one server submits",
    metrics=(
        Metric(
            "rate",
            "tasks per second",
            "1/s",
            {"sqlite": Comparison("goal", at_least=2.0), "postgres": Comparison("goal", at_least=1.0)},
        ),
        Metric(
            "begin",
            "submitted until begun, median",
            "ms",
            {name: Comparison("goal", at_most=1.0) for name in ("sqlite", "postgres")},
        ),
        Metric(
            "idle",
            "idle worker, share of a core",
            "%",
            {name: Comparison("goal", at_most=1.0) for name in ("sqlite", "postgres")},
        ),
    ),
    series=(goal(rate=500.0, begin=20.0, idle=1.0), _series("sqlite", _sqlite), _series("postgres", _postgres)),
    rounds=3,
)
