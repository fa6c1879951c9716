"""What all task engines have in common: ids, owners, lifetimes, limits, runs, questions and ends."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.task_engine import ITaskRun, NewTask, Outcome, TaskQuestion, TaskRecord
from axolotl_server.extensions.tasks.task_call import owner_of
from axolotl_server.protocol.connection import Connection
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.servers.task_engines import ENGINES, OpenEngine, opened

ADA = Principal("ada", "engines")
MINE = owner_of("directed", ADA, None)
DONE = Outcome("completed", None, b'{"content":[]}')
QUESTION = TaskQuestion("elicitation/create", {"message": "How many?"}, "digest")

pytestmark = pytest.mark.parametrize("kind", ENGINES)


def task_of(owner: bytes = MINE, ttl_seconds: float = 60, tool: str = "render", **fields: Any) -> NewTask:
    return NewTask(owner, tool, b"call", ttl_seconds, **fields)


async def finish(run: ITaskRun) -> None:
    await run.end(DONE)


async def hang(run: ITaskRun) -> None:
    stopped = asyncio.Event()
    run.token.on_cancel(lambda reason: stopped.set())
    await stopped.wait()


async def reach(engine: OpenEngine, task_id: str, *statuses: str) -> TaskRecord:
    """Wait until a task has one of some statuses."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            record = await engine.find(task_id, None)
            if record is not None and record.status in statuses:
                return record
            await asyncio.sleep(0.005)  # sleeps: another process may change the task, which has no event here


async def gone(engine: OpenEngine, task_id: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await engine.find(task_id, None) is None:
                return
            await asyncio.sleep(0.005)  # sleeps: the store has no event for a deleted task


async def test_ids_cannot_be_guessed(kind: str) -> None:
    """Task ids are unique, long and random."""
    async with opened(kind, hang) as engine:
        ids = {(await engine.submit(task_of())).id for _ in range(50)}
        assert len(ids) == 50
        assert all(re.fullmatch(r"[\w-]{32}", task_id, re.ASCII) for task_id in ids)
        assert len({task_id[:4] for task_id in ids}) > 40


async def test_a_new_task_works(kind: str) -> None:
    """A new task has the status working and a creation time."""
    async with opened(kind, hang) as engine:
        record = await engine.submit(task_of())
        assert (record.status, record.message, record.outcome, record.tool) == ("working", None, None, "render")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.created_at)
        assert record.updated_at == record.created_at
        assert (record.owner, record.ttl_seconds) == (MINE, 60)


async def test_a_task_runs(kind: str) -> None:
    """The call reaches the runner as it was submitted, and its outcome can be read."""
    calls: list[bytes] = []

    async def run(run: ITaskRun) -> None:
        calls.append(run.call)
        assert run.record.run == 1
        assert await run.end(DONE)
        assert not await run.end(Outcome("failed", "late"))

    async with opened(kind, run) as engine:
        record = await engine.submit(task_of())
        ended = await reach(engine, record.id, "completed")
        assert (ended.outcome, calls) == (DONE, [b"call"])


async def test_an_outcome_is_kept_as_it_is(kind: str) -> None:
    """Messages, results and errors of an outcome survive storage."""
    outcomes = [
        Outcome("failed", "The tool failed", b'{"isError":true}'),
        Outcome("cancelled"),
    ]
    given = iter(outcomes)

    async def run(run: ITaskRun) -> None:
        await run.end(next(given))

    async with opened(kind, run) as engine:
        for outcome in outcomes:
            ended = await reach(engine, (await engine.submit(task_of())).id, outcome.status)
            assert (ended.outcome, ended.message) == (outcome, outcome.message)


async def test_the_number_of_tasks_has_a_limit(kind: str) -> None:
    """A task beyond the limit is rejected and can be retried; an expired task frees a place."""
    async with opened(kind, hang, maximum=2) as engine:
        await engine.submit(task_of())
        short = await engine.submit(task_of(ttl_seconds=0.05))
        with pytest.raises(Overloaded) as caught:
            await engine.submit(task_of())
        assert caught.value.retry_after_seconds == 1
        await gone(engine, short.id)
        await engine.tidy()
        assert (await engine.submit(task_of())).status == "working"


async def test_one_caller_cannot_take_all_places(kind: str) -> None:
    """The limit per caller counts only its own tasks."""
    async with opened(kind, hang, per_caller=1) as engine:
        await engine.submit(task_of(share=b"ada"))
        with pytest.raises(Overloaded, match="one caller may have 1"):
            await engine.submit(task_of(share=b"ada"))
        await engine.submit(task_of(share=b"bob"))
        await engine.submit(task_of())
        await engine.submit(task_of())


async def test_strangers_find_nothing(kind: str) -> None:
    """Another subject, tenant or design cannot see, answer or cancel a task."""
    strangers = [
        owner_of("requested", ADA, None),
        owner_of("directed", Principal("ada"), None),
        owner_of("directed", Principal("ada", "looms"), None),
        owner_of("directed", Principal("bob", "engines"), None),
        owner_of("directed", ANONYMOUS, None),
        owner_of("requested", ANONYMOUS, Connection(print)),
    ]
    async with opened(kind, hang) as engine:
        task = await engine.submit(task_of())
        for stranger in strangers:
            assert await engine.find(task.id, stranger) is None
            assert await engine.of(stranger, 0, 10) == ()
            assert await engine.cancel(task.id, stranger, CancelReason.CLIENT) is None
            assert await engine.answer(task.id, stranger, {"amount": b"1"}) == frozenset()
        found = await engine.find(task.id, MINE)
        assert found is not None
        assert found.open
        assert await engine.find("nothing", MINE) is None


@pytest.mark.parametrize("wrong", ["", "\0", "\ud800", "x" * 10_000])
async def test_ids_that_no_task_can_have(kind: str, wrong: str) -> None:
    """An ID that a database would refuse is unknown, and does not disturb those who look for tasks at the same time."""
    async with opened(kind, hang) as engine:
        tasks = [await engine.submit(task_of()) for _ in range(2)]
        found = await asyncio.gather(*(engine.find(one, MINE) for one in (tasks[0].id, wrong, tasks[1].id)))
        assert [one and one.id for one in found] == [tasks[0].id, None, tasks[1].id]


def test_a_renewed_token_is_the_same_owner(kind: str) -> None:
    """Ownership does not depend on scopes and claims, which change with every token."""
    renewed = Principal("ada", "engines", frozenset({"more"}), claims={"exp": 2})
    assert owner_of("directed", renewed, Connection(print)) == MINE


def test_anonymous_callers_are_told_apart_by_their_connection(kind: str) -> None:
    """Anonymous callers on different connections are different owners."""
    owners = {owner_of("requested", ANONYMOUS, Connection(print)) for _ in range(100)}
    assert len(owners) == 100
    mine = Connection(print)
    assert owner_of("requested", ANONYMOUS, mine) == owner_of("requested", ANONYMOUS, mine)


async def test_a_task_expires(kind: str) -> None:
    """An expired task is stopped, announced and forgotten."""
    reasons: list[CancelReason] = []

    async def run(run: ITaskRun) -> None:
        run.token.on_cancel(reasons.append)
        await hang(run)

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of(ttl_seconds=1.5))
        await engine.began(1)
        await gone(engine, task.id)
        assert await engine.of(MINE, 0, 10) == ()
        await until(lambda: reasons == [CancelReason.TIMEOUT])


async def test_tasks_are_listed_by_age(kind: str) -> None:
    """Tasks are listed from the oldest on, and the list can continue after any of them."""
    async with opened(kind, hang) as engine:
        tasks = [await engine.submit(task_of()) for _ in range(4)]
        other = await engine.submit(task_of(owner_of("directed", Principal("bob"), None)))
        assert ids(await engine.of(MINE, 0, 10)) == ids(tasks)
        assert ids(await engine.of(MINE, 0, 2)) == ids(tasks[:2])
        assert ids(await engine.of(MINE, tasks[1].number, 10)) == ids(tasks[2:])
        assert len(await engine.of(None, 0, 10)) == 5
        assert ids(await engine.latest(3)) == ids((other, tasks[3], tasks[2]))


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (CancelReason.CLIENT, "The caller cancelled the task"),
        (CancelReason.OPERATOR, "An operator cancelled the task"),
    ],
)
async def test_a_task_is_cancelled(kind: str, reason: CancelReason, message: str) -> None:
    """A cancelled task ends at once and says who cancelled it, its code is stopped, and its end is final."""
    reasons: list[CancelReason] = []
    late: list[bool] = []

    async def run(run: ITaskRun) -> None:
        run.token.on_cancel(reasons.append)
        await hang(run)
        late.append(await run.end(DONE))

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of())
        await engine.began(1)
        cancelled = await engine.cancel(task.id, MINE, reason)
        assert cancelled is not None
        assert (cancelled.status, cancelled.message) == ("cancelled", message)
        await until(lambda: (reasons, late) == ([reason], [False]))
        again = await engine.cancel(task.id, MINE, CancelReason.CLIENT)
        assert again is not None
        assert (again.status, again.updated_at) == ("cancelled", cancelled.updated_at)


async def test_a_task_that_is_cancelled_before_it_runs(kind: str) -> None:
    """The code of a task that was cancelled before its start never runs."""
    async with opened(kind, finish, works=False) as engine:
        task = await engine.submit(task_of())
        await engine.cancel(task.id, MINE, CancelReason.CLIENT)
        engine.begin_work()
        other = await engine.submit(task_of())
        await reach(engine, other.id, "completed")
        assert engine.runs == 1


async def test_a_task_asks(kind: str) -> None:
    """A question is visible until it is answered; the answer reaches the code and stays known."""
    answers: list[Any] = []

    async def run(run: ITaskRun) -> None:
        answers.append(await run.ask("amount", QUESTION))
        answers.append(dict(run.answers))
        await run.end(DONE)

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of())
        asking = await reach(engine, task.id, "input_required")
        assert asking.questions == {"amount": QUESTION}
        assert await engine.answer(task.id, MINE, {"other": b"0"}) == frozenset()
        assert await engine.answer(task.id, MINE, {"amount": b"3", "other": b"0"}) == {"amount"}
        ended = await reach(engine, task.id, "completed")
        assert (answers, ended.questions) == ([b"3", {"amount": b"3"}], {})
        assert await engine.answer(task.id, MINE, {"amount": b"4"}) == frozenset()


async def test_several_questions(kind: str) -> None:
    """A task waits for input until the last question is answered."""

    async def run(run: ITaskRun) -> None:
        answers = await asyncio.gather(run.ask("one", QUESTION), run.ask("two", QUESTION))
        await run.end(Outcome("completed", None, b"".join(answer or b"" for answer in answers)))

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of())
        await until_asked(engine, task.id, "one", "two")
        await engine.answer(task.id, MINE, {"two": b"2"})
        record = await engine.find(task.id, MINE)
        assert record is not None
        assert (record.status, list(record.questions)) == ("input_required", ["one"])
        await engine.answer(task.id, MINE, {"one": b"1"})
        ended = await reach(engine, task.id, "completed")
        assert ended.outcome is not None
        assert ended.outcome.result == b"12"


async def test_a_question_is_withdrawn(kind: str) -> None:
    """A question whose code no longer waits disappears."""

    seen = asyncio.Event()

    async def run(run: ITaskRun) -> None:
        asking = asyncio.ensure_future(run.ask("amount", QUESTION))
        await seen.wait()
        asking.cancel()
        await asyncio.wait((asking,))
        await hang(run)

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of())
        await reach(engine, task.id, "input_required")
        seen.set()
        assert (await reach(engine, task.id, "working")).questions == {}


async def test_values_are_kept(kind: str) -> None:
    """A kept value is known at once and does not disturb answers with the same key."""
    seen: list[Mapping[str, bytes]] = []

    async def run(run: ITaskRun) -> None:
        await run.keep("amount", b"step")
        await run.ask("amount", QUESTION)
        seen.extend((run.kept, run.answers))
        await run.end(DONE)

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of())
        await reach(engine, task.id, "input_required")
        await engine.answer(task.id, MINE, {"amount": b"answer"})
        await reach(engine, task.id, "completed")
        assert seen == [{"amount": b"step"}, {"amount": b"answer"}]


async def test_listeners_hear_of_changes(kind: str) -> None:
    """A follower of a task sees its states in order, and the messages of its code."""

    async def run(run: ITaskRun) -> None:
        run.send(b'{"method":"hello"}')
        await run.ask("amount", QUESTION)
        await run.end(DONE)

    async with opened(kind, run) as engine:
        task = await engine.submit(task_of())
        await reach(engine, task.id, "input_required")
        await until(lambda: engine.seen(task.id)[-1:] == ["input_required"])
        await engine.answer(task.id, MINE, {"amount": b"1"})
        await until(lambda: engine.seen(task.id)[-1:] == ["completed"])
        assert engine.messages == [b'{"method":"hello"}']


async def test_a_key_names_one_open_task(kind: str) -> None:
    """A second task with the key of an open task of the same owner is that task."""
    async with opened(kind, hang) as engine:
        first = await engine.submit(task_of(key=b"key"))
        assert (await engine.submit(task_of(key=b"key"))).id == first.id
        other = await engine.submit(task_of(owner_of("directed", Principal("bob"), None), key=b"key"))
        assert other.id != first.id
        await engine.cancel(first.id, MINE, CancelReason.CLIENT)
        assert (await engine.submit(task_of(key=b"key"))).id != first.id


async def test_the_key_of_an_expired_task_is_free(kind: str) -> None:
    """A task that has expired is not returned, even if nothing had the time to delete it."""
    async with opened(kind, hang, works=False) as engine:
        first = await engine.submit(task_of(key=b"key", ttl_seconds=0.02))
        time.sleep(0.05)  # sleeps: no timer can run before the next submission  # noqa: ASYNC251
        assert (await engine.submit(task_of(key=b"key"))).id != first.id


def ids(records: Sequence[TaskRecord]) -> list[str]:
    return [record.id for record in records]


async def until_asked(engine: OpenEngine, task_id: str, *keys: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            record = await engine.find(task_id, MINE)
            assert record is not None
            if set(record.questions) == set(keys):
                return
            await asyncio.sleep(0.005)  # sleeps: another process may ask, which has no event here
