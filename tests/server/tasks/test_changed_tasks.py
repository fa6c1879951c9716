"""Stored tasks that somebody with access to the store has changed: they fail, and nothing else happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_core.task_engine import ITaskRun, NewTask, Outcome, TaskQuestion, TaskRecord
from axolotl_server.extensions.tasks.engines.sqlite_tasks import refuse_network_file_system
from tests.support.servers.serving import until
from tests.support.servers.task_engines import KEY, STORES, OpenEngine, change_store, opened, store_of

OWNER = b"owner"
QUESTION = TaskQuestion("elicitation/create", {"message": "How many?"}, "digest")
PICKLE = b"cos\nsystem\n(S'touch /tmp/axolotl-was-here'\ntR.".hex()
UNREADABLE = "The stored task cannot be read: it was changed"
CHANGES = {
    "forged": ("zeroblob(length({0}))", "decode(repeat('00', length({0})), 'hex')"),
    "truncated": ("substr({0}, 1, length({0}) - 3)", "substr({0}, 1, length({0}) - 3)"),
    "pickled": (f"x'{PICKLE}'", f"decode('{PICKLE}', 'hex')"),
    "swapped": ("({1})", "({1})"),
}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store."""
    with store_of(request.param) as place:
        assert place is not None
        yield place


def change(url: str, table: str, column: str, how: str, task: str, *, where: str = "") -> None:
    """Change a value of a task; a swapped one comes from another task."""
    name = "id" if table == "tasks" else "task"
    sqlite, postgres = CHANGES[how]
    statements = []
    for form, prefix in ((sqlite, ""), (postgres, "axolotl.")):
        other = f"select {column} from {prefix}{table} where {name} <> '{task}'{where} limit 1"
        statements.append(
            f"update {prefix}{table} set {column} = {form.format(column, other)} where {name} = '{task}'{where}"
        )
    change_store(url, *statements)


class Asking:
    """A run that keeps a step and asks; the next run of the task notes what it gets."""

    def __init__(self) -> None:
        self.parked = 0
        self.seen: list[str] = []

    async def __call__(self, run: ITaskRun) -> None:
        if run.record.run == 1:
            await run.keep("charge", b"charged")
            assert await run.ask("amount", QUESTION, hold_seconds=0.01) is None
            self.parked += 1
            return
        assert (dict(run.kept), dict(run.answers)) == ({"charge": b"charged"}, {"amount": b"3"})
        self.seen.append(run.record.id)
        await run.end(Outcome("completed", None, b"{}"))


async def ended(engine: OpenEngine, task_id: str) -> TaskRecord:
    await until(lambda: bool({"completed", "failed"} & set(engine.seen(task_id))))
    record = await engine.find(task_id, OWNER)
    assert record is not None
    return record


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("kind", ["step", "answer"])
async def test_kept_values_that_were_changed(url: str, kind: str, how: str) -> None:
    """No run gets a changed step or answer: its task fails, and another task continues."""
    asking = Asking()
    async with opened("", asking, place=url) as engine:
        first, second = [(await engine.submit(NewTask(OWNER, "render", b"call", 60))).id for _ in range(2)]
        await until(lambda: asking.parked == 2)
    async with opened("", asking, place=url, works=False) as engine:
        for task_id in (first, second):
            assert await engine.answer(task_id, OWNER, {"amount": b"3"}) == {"amount"}
        change(url, "kept", "value", how, first, where=f" and kind = '{kind}'")
        engine.begin_work()
        failed, completed = await ended(engine, first), await ended(engine, second)
    assert (failed.status, failed.message, completed.status) == ("failed", UNREADABLE, "completed")
    assert asking.seen == [second]


@pytest.mark.parametrize("how", CHANGES)
async def test_questions_that_were_changed(url: str, how: str) -> None:
    """Nobody is asked a changed question: the task fails when it is read."""
    asking = Asking()
    async with opened("", asking, place=url) as engine:
        first, _ = [(await engine.submit(NewTask(OWNER, "render", b"call", 60))).id for _ in range(2)]
        await until(lambda: asking.parked == 2)
        change(url, "kept", "value", how, first, where=" and kind = 'question'")
        record = await engine.find(first, OWNER)
    assert record is not None
    assert (record.status, record.message, record.questions) == ("failed", UNREADABLE, {})


@pytest.mark.parametrize("parked", [False, True], ids=["first run", "second run"])
async def test_a_process_with_other_keys_leaves_tasks_alone(
    url: str, parked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker whose settings have other keys runs no task and fails none: a worker with the right keys runs it."""
    asking = Asking()
    async with opened("", asking, place=url, works=parked) as engine:
        task_id = (await engine.submit(NewTask(OWNER, "render", b"call", 60))).id
        if parked:
            await until(lambda: asking.parked == 1)
            await engine.answer(task_id, OWNER, {"amount": b"3"})
    async with opened("", asking, place=url, key=KEY[::-1]) as stranger:
        await until(lambda: "set protocol.state_keys to the same keys on all servers and workers" in caplog.text)
        assert stranger.runs == 0
    async with opened("", asking, place=url) as engine:
        if not parked:
            await until(lambda: asking.parked == 1)
            await engine.answer(task_id, OWNER, {"amount": b"3"})
        assert (await ended(engine, task_id)).status == "completed"
    assert asking.seen == [task_id]


@pytest.mark.parametrize("how", CHANGES)
async def test_calls_that_were_changed(url: str, how: str) -> None:
    """No worker runs a changed call."""
    calls: list[bytes] = []

    async def note(run: ITaskRun) -> None:
        calls.append(run.call)
        await run.end(Outcome("completed", None, b"{}"))

    async with opened("", note, place=url, works=False) as engine:
        first = await engine.submit(NewTask(OWNER, "render", b"first", 60))
        second = await engine.submit(NewTask(OWNER, "render", b"second", 60))
        change(url, "tasks", "call", how, first.id)
        engine.begin_work()
        failed, completed = await ended(engine, first.id), await ended(engine, second.id)
    assert (failed.status, completed.status, calls) == ("failed", "completed", [b"second"])


@pytest.mark.parametrize("how", CHANGES)
async def test_outcomes_that_were_changed(url: str, how: str) -> None:
    """Nobody gets a changed result."""

    async def end(run: ITaskRun) -> None:
        await run.end(Outcome("completed", None, run.call))

    async with opened("", end, place=url) as engine:
        first, second = [(await engine.submit(NewTask(OWNER, "render", text, 60))).id for text in (b"1", b"2")]
        for task_id in (first, second):
            await ended(engine, task_id)
        change(url, "tasks", "outcome", how, first)
        record = await engine.find(first, OWNER)
        other = await engine.find(second, OWNER)
    assert record is not None
    assert record.outcome is not None
    assert (record.status, record.outcome.result) == ("failed", None)
    assert other is not None
    assert other.outcome is not None
    assert other.outcome.result == b"2"


@pytest.mark.parametrize("how", CHANGES)
async def test_texts_that_were_changed(url: str, how: str) -> None:
    """A task whose text was changed is listed without it, beside the others."""

    async def end(run: ITaskRun) -> None:
        await run.end(Outcome("completed", run.call.decode(), b"{}"))

    async with opened("", end, place=url) as engine:
        first, second = [(await engine.submit(NewTask(OWNER, "render", text, 60))).id for text in (b"1", b"2")]
        for task_id in (first, second):
            await ended(engine, task_id)
        change(url, "tasks", "message", how, first)
        listed = await engine.of(OWNER, 0, 10)
    assert [(record.id, record.message) for record in listed] == [(first, None), (second, "2")]


MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:45 / /mnt/share rw,relatime shared:2 - nfs4 server:/share rw
41 40 8:2 / /mnt/share/local rw,relatime - ext4 /dev/sdb1 rw
"""


@pytest.mark.parametrize(("path", "refused"), [("/srv", False), ("/mnt/share", True), ("/mnt/share/local", False)])
def test_a_network_file_system_is_refused(tmp_path: Path, path: str, refused: bool) -> None:
    """A file on a network file system is refused; the innermost mount decides."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    if refused:
        with pytest.raises(ConfigurationError, match=r"network file system \(nfs4\)"):
            refuse_network_file_system(Path(path) / "tasks.db", mounts)
    else:
        refuse_network_file_system(Path(path) / "tasks.db", mounts)


def test_systems_without_a_list_of_mounts(tmp_path: Path) -> None:
    """Where the system has no such list, nothing is refused."""
    refuse_network_file_system(tmp_path / "tasks.db", tmp_path / "missing")
