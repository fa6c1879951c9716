"""`axolotl tasks` and `axolotl worker --health`, as processes, on a SQLite store."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from pwd import getpwuid

import pytest

from axolotl_core.task_engine import ITaskRun, NewTask, Outcome
from tests.support.audited_calls import read_log, store_at
from tests.support.peers.wire import raw_exchange, raw_request
from tests.support.servers.serving import until
from tests.support.servers.task_engines import KEY, OpenEngine, opened

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
TARGET = "tests/support/containers/note_tools.py:Container"


async def begin(
    url: str, *arguments: str, key: str = KEY, variables: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a command."""
    environment = {**os.environ, "AXOLOTL_TASKS__URL": url, "AXOLOTL_PROTOCOL__STATE_KEYS": f'["{key}"]'}
    environment.update(variables or {})
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    command = sys.executable, "-m", "axolotl_cli", *arguments
    return await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environment, stdin=nothing, stdout=pipe, stderr=pipe
    )


async def run(
    url: str, *arguments: str, key: str = KEY, variables: Mapping[str, str] | None = None
) -> tuple[int | None, str, str]:
    """Run a command to its end; returns its exit code and what it printed."""
    process = await begin(url, "tasks", *arguments, key=key, variables=variables)
    output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


async def never(run: ITaskRun) -> None:
    raise AssertionError


@asynccontextmanager
async def store(url: str) -> AsyncIterator[OpenEngine]:
    """The engine of a server that runs no tasks."""
    async with opened("sqlite", never, works=False, place=url) as engine:
        yield engine


async def test_tasks_are_prepared_listed_shown_and_cancelled(tmp_path: Path) -> None:
    """The commands see the tasks of all callers, and a cancelled task is cancelled for its server, too."""
    path = tmp_path / "tasks.db"
    url = f"sqlite:///{path}"
    assert await run(url, "prepare") == (0, "The store of tasks is ready.\n", "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert await run(url, "list") == (0, "", "No tasks.\n")
    assert await run(f"sqlite:///{tmp_path}/nowhere/tasks.db", "list") == (
        2, "", f"Error: Setting tasks.url: the directory {tmp_path}/nowhere does not exist: create it\n",
    )  # fmt: skip
    async with store(url) as engine:
        record = await engine.submit(NewTask(b"owner", "note", b"a-secret-call", 60))
        assert record.id.isalnum(), "an ID that begins with a hyphen would be an option"
        code, output, _ = await run(url, "list", "--json")
        assert (code, [task["id"] for task in json.loads(output)]) == (0, [record.id])
        code, output, _ = await run(url, "list")
        heading, _, row = output.splitlines()
        assert (code, heading.split()) == (0, ["Task", "Number", "Status", "Created", "Tool"])
        assert row.split() == [record.id, "1", "working", record.created_at, "note"]
        code, output, _ = await run(url, "show", record.id)
        assert (code, f"id: {record.id}" in output, "status: working" in output) == (0, True, True)
        assert "a-secret-call" not in output
        assert (await run(url, "cancel", record.id))[:2] == (0, "The task is cancelled.\n")
        found = await engine.find(record.id, b"owner")
        assert found is not None
        assert found.status == "cancelled"


async def test_cancelled_tasks_are_recorded(tmp_path: Path) -> None:
    """Who cancelled a task is in a log of the command's own; if there is none, a warning says so."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    shared, own = tmp_path / "audit.jsonl", tmp_path / "audit-{worker}.jsonl"
    async with store(url) as engine:
        tasks = [await engine.submit(NewTask(b"owner", "note", b"call", 60)) for _ in range(2)]
        for _ in range(2):
            code, _, errors = await run(url, "cancel", tasks[0].id, variables={"AXOLOTL_AUDIT__JSONL_PATH": str(own)})
            assert (code, errors) == (0, "")
        found = await engine.find(tasks[0].id, b"owner")
        assert found is not None
        assert found.message == "An operator cancelled the task"
        server = store_at(shared)
        server.open()
        code, _, errors = await run(url, "cancel", tasks[1].id, variables={"AXOLOTL_AUDIT__JSONL_PATH": str(shared)})
        server.close()
        assert code == 0
        assert errors.startswith(f"Warning: the cancellation is not in the audit log. The audit log {shared} is in use")
    records = read_log(tmp_path / "audit-operator-1.jsonl")
    assert [one["event"] for one in records] == ["open", "cancelled", "close"]
    user = getpwuid(os.getuid()).pw_name
    assert {"name": "note", "task": tasks[0].id, "reason": "operator", "subject": user}.items() <= records[1].items()


async def test_control_sequences(tmp_path: Path) -> None:
    """A terminal shows control sequences in a task instead of obeying them."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    async with store(url) as engine:
        record = await engine.submit(NewTask(b"owner", "note\x1b[2J\n1  forged", b"", 60))
        for command in (("list",), ("show", record.id)):
            code, output, _ = await run(url, *command)
            assert (code, "note\\x1b[2J\\n1  forged" in output) == (0, True)


async def test_a_task_with_another_key(tmp_path: Path) -> None:
    """Settings with other keys end with an error that says what to do, without a traceback."""
    url = f"sqlite:///{tmp_path}/tasks.db"

    async def end(run: ITaskRun) -> None:
        await run.end(Outcome("completed", None, b"{}"))

    async with opened("", end, place=url) as engine:
        record = await engine.submit(NewTask(b"owner", "render", b"", 60))
        await until(lambda: "completed" in engine.seen(record.id))
        code, _, errors = await run(url, "show", record.id, key=KEY[::-1])
    assert code == 2
    assert "set protocol.state_keys to the same keys" in errors
    assert "Traceback" not in errors


async def test_a_task_that_does_not_exist(tmp_path: Path) -> None:
    """Unknown tasks, and settings without a store, end with an error."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    for command in ("show", "cancel"):
        code, _, errors = await run(url, command, "unknown")
        assert code == 1
        assert "Task 'unknown' not found" in errors
    code, _, errors = await run("redis://host", "list")
    assert code not in (0, None)
    assert "tasks.url" in errors


async def test_probes_of_a_worker(tmp_path: Path) -> None:
    """A worker answers probes: alive, ready while it takes tasks, and nothing else."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    worker = await begin(url, "worker", TARGET, "--health", "127.0.0.1:0")
    try:
        assert worker.stderr is not None
        port = None
        while port is None:
            line = (await worker.stderr.readline()).decode()
            assert line
            found = re.search(r"probes are answered on \S+, port (\d+)", line)
            port = None if found is None else int(found[1])
        statuses = {}
        for path in ("/livez", "/readyz", "/other"):
            reply = await raw_exchange(port, raw_request(b"", [], method="GET", path=path, host="10.1.2.3"))
            statuses[path] = reply.status
        assert statuses == {"/livez": 200, "/readyz": 200, "/other": 404}
        worker.send_signal(signal.SIGTERM)
        await worker.communicate()
        assert worker.returncode == 0
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()


async def started(process: asyncio.subprocess.Process, line: str) -> None:
    """Wait until a process logs a line; the rest is read in the background."""
    assert process.stderr is not None
    log = b""
    while line.encode() not in log:
        read = await process.stderr.readline()
        assert read, log.decode()
        log += read


async def test_audit_logs_of_workers(tmp_path: Path) -> None:
    """Each task worker has a log of its own beside those of the server; the number of a killed one is used again."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    variables = {"AXOLOTL_AUDIT__JSONL_PATH": str(tmp_path / "audit-{worker}.jsonl")}
    serve = ("serve", TARGET, "-t", "http", "--port", "0", "--workers", "2")
    processes: list[asyncio.subprocess.Process] = []

    async def add(line: str, *words: str) -> asyncio.subprocess.Process:
        processes.append(await begin(url, *words, variables=variables))
        await started(processes[-1], line)
        return processes[-1]

    def logs() -> list[str]:
        return sorted(path.name for path in tmp_path.glob("audit-*.jsonl"))

    try:
        await add("2 workers serve", *serve)
        first = await add("running tasks of", "worker", TARGET)
        await add("running tasks of", "worker", TARGET)
        both = ["audit-1.jsonl", "audit-2.jsonl", "audit-task-1.jsonl", "audit-task-2.jsonl"]
        assert logs() == both
        first.kill()
        await first.wait()
        await add("running tasks of", "worker", TARGET)
        assert logs() == both
    finally:
        for process in processes:
            if process.returncode is None:
                process.terminate()
            await process.communicate()
    verifying = await begin(url, "audit", "verify", variables["AXOLOTL_AUDIT__JSONL_PATH"], variables=variables)
    output, _ = await verifying.communicate()
    assert (verifying.returncode, output.decode().endswith("\n4 logs found\n")) == (0, True)
