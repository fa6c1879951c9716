"""The task store: ids, owners, lifetimes, limits and shutdown."""

import asyncio
import gc
import re
import time
import weakref
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InvalidParams, Overloaded, ProtocolError
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server.messages.connection import Connection
from axolotl_server.settings.calls import TaskSettings
from axolotl_server.tasks.task import Owner, Task, TaskStore, owner_of
from tests.support.servers.serving import PATIENCE_SECONDS

ADA = Principal("ada", "engines")
MINE = owner_of("directed", ADA, None)


def ignore(task: Task) -> None:
    """Ignore a change."""


def store_of(**settings: Any) -> TaskStore:
    return TaskStore(TaskSettings(**settings))


async def ended(task: Task) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task.ended


async def test_ids_cannot_be_guessed() -> None:
    """Task ids are unique, long and random."""
    store = store_of()
    ids = {store.create(MINE, None, ignore).id for _ in range(200)}
    assert len(ids) == 200
    assert all(re.fullmatch(r"[\w-]{32}", task_id, re.ASCII) for task_id in ids)
    assert len({task_id[:4] for task_id in ids}) > 150
    await store.close()


async def test_a_new_task_works() -> None:
    """A new task has the status working and a creation time."""
    store = store_of()
    task = store.create(MINE, None, ignore)
    assert (task.status, task.message, task.result, task.error) == ("working", None, None, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", task.created_at)
    assert task.updated_at == task.created_at
    await store.close()


@pytest.mark.parametrize(("asked", "granted"), [(None, 60.0), (10.0, 10.0), (61.0, 60.0), (1e300, 60.0)])
async def test_a_lifetime_has_a_limit(asked: float | None, granted: float) -> None:
    """A task has the requested lifetime, up to the configured maximum."""
    store = store_of(ttl_seconds=60)
    assert store.create(MINE, asked, ignore).ttl_seconds == granted
    await store.close()


async def test_the_number_of_tasks_has_a_limit() -> None:
    """A task beyond the limit is rejected and can be retried; an expired task frees a place."""
    store = store_of(maximum=2, poll_interval_seconds=3)
    kept = store.create(MINE, None, ignore)
    short = store.create(MINE, 0.001, ignore)
    with pytest.raises(Overloaded) as caught:
        store.create(MINE, None, ignore)
    assert caught.value.retry_after_seconds == 3
    await ended(short)
    assert store.create(MINE, None, ignore).status == "working"
    assert kept.open
    await store.close()


@pytest.mark.parametrize(
    "stranger",
    [
        owner_of("requested", ADA, None),
        owner_of("directed", Principal("ada"), None),
        owner_of("directed", Principal("ada", "looms"), None),
        owner_of("directed", Principal("bob", "engines"), None),
        owner_of("directed", ANONYMOUS, None),
    ],
)
async def test_strangers_find_nothing(stranger: Owner) -> None:
    """Another subject, tenant or design cannot see a task."""
    store = store_of()
    task = store.create(MINE, None, ignore)
    with pytest.raises(InvalidParams) as foreign:
        store.find(task.id, stranger)
    with pytest.raises(InvalidParams) as unknown:
        store.find("nothing", MINE)
    assert foreign.value.message == unknown.value.message
    assert list(store.of(stranger)) == []
    assert store.find(task.id, MINE) is task
    await store.close()


async def test_a_renewed_token_finds_its_tasks() -> None:
    """Ownership does not depend on scopes and claims, which change with every token."""
    store = store_of()
    task = store.create(MINE, None, ignore)
    renewed = Principal("ada", "engines", frozenset({"more"}), claims={"exp": 2})
    assert store.find(task.id, owner_of("directed", renewed, Connection(print))) is task
    await store.close()


async def test_anonymous_callers_are_told_apart_by_their_connection() -> None:
    """Only the same connection finds the task of an anonymous caller, even after it has been closed."""
    store = store_of()
    mine = Connection(print)
    task = store.create(owner_of("requested", ANONYMOUS, mine), None, ignore)
    assert store.find(task.id, owner_of("requested", ANONYMOUS, mine)) is task
    place = id(mine)
    del mine
    gc.collect()
    others = [Connection(print) for _ in range(100)]
    others.sort(key=lambda one: id(one) != place)  # one of them is likely to have the address of the deleted one
    for other in others:
        assert list(store.of(owner_of("requested", ANONYMOUS, other))) == []
    await store.close()


async def test_a_task_expires() -> None:
    """An expired task is ended, announced and forgotten."""
    store = store_of()
    told: list[tuple[str, str | None]] = []
    task = store.create(MINE, 0.001, lambda task: told.append((task.status, task.message)))
    await ended(task)
    assert told == [("cancelled", "The task has expired")]
    with pytest.raises(InvalidParams):
        store.find(task.id, MINE)
    assert list(store.of(MINE)) == []
    assert (store._tasks, store._timers) == ({}, {})


async def test_an_expired_task_is_not_found_before_its_timer_rang() -> None:
    """An expired task is not found, even if its timer is late."""
    store = store_of()
    task = store.create(MINE, 0.0, ignore)
    with pytest.raises(InvalidParams):
        store.find(task.id, MINE)
    assert list(store.of(MINE)) == []
    await ended(task)


async def test_a_timer_that_rings_early_waits_for_the_rest() -> None:
    """A timer that fires early waits for the rest: a task never expires too early."""
    store = store_of()
    task = store.create(MINE, 0.001, ignore)
    task.expires += 0.02
    await ended(task)
    assert time.monotonic() >= task.expires
    assert (store._tasks, store._timers) == ({}, {})


async def test_tasks_are_listed_by_age() -> None:
    """Tasks are listed from the oldest on, and the list can continue after any of them."""
    store = store_of()
    tasks = [store.create(MINE, None, ignore) for _ in range(4)]
    store.create(owner_of("directed", Principal("bob"), None), None, ignore)
    assert list(store.of(MINE)) == tasks
    assert list(store.of(MINE, after=tasks[1].number)) == tasks[2:]
    await store.close()


async def test_an_end_is_final() -> None:
    """The final status of a task cannot change, and no more notifications are sent."""
    store = store_of()
    told: list[str] = []
    task = store.create(MINE, None, lambda task: told.append(task.status))
    task.end("completed", result=b"{}")
    task.end("failed")
    task.fail(InvalidParams("late"))
    task.cancel(CancelReason.CLIENT)
    task.wait_for("answer")
    task.stop_waiting_for("answer")
    assert (task.status, task.result, task.error, told) == ("completed", task.result, None, ["completed"])
    assert bytes(task.result or b"") == b"{}"
    await store.close()
    assert told == ["completed"]


async def test_a_task_waits_while_any_answer_is_missing() -> None:
    """A task waits for input until the last question is answered."""
    store = store_of()
    told: list[str] = []
    task = store.create(MINE, None, lambda task: told.append(task.status))
    task.wait_for("first")
    task.wait_for("second")
    task.stop_waiting_for("first")
    task.stop_waiting_for("first")
    assert task.status == "input_required"
    task.stop_waiting_for("second")
    task.stop_waiting_for("second")
    assert told == ["input_required", "input_required", "working"]
    await store.close()


async def test_an_error_leaves_its_frames_behind() -> None:
    """A stored error keeps its message but releases its frames."""
    task = store_of().create(MINE, 0.0, ignore)
    try:
        raise MissingPart("gone", part=7)
    except MissingPart as error:
        task.fail(error)
        original = error
    kept = task.error
    assert isinstance(kept, MissingPart)
    assert kept is not original
    assert (kept.message, kept.data, kept.part, kept.args) == ("gone", {"part": 7}, 7, ("gone",))
    assert (kept.__traceback__, kept.__context__) == (None, None)


class MissingPart(ProtocolError):
    """An error with an unusual constructor."""

    def __init__(self, message: str, *, part: int) -> None:
        super().__init__(message, data={"part": part})
        self.part = part


async def test_the_end_of_the_store_stops_what_runs() -> None:
    """Closing the store cancels tasks, waits briefly for their code, and accepts no more."""
    store = store_of()
    told: list[str] = []
    task = store.create(MINE, None, lambda task: told.append(task.status))
    tidied = asyncio.Event()

    async def work() -> None:
        try:
            await task.ended
            await asyncio.sleep(0)
        finally:
            tidied.set()

    store.run(work())
    await store.close()
    assert tidied.is_set()
    assert (task.status, task.message, told) == ("cancelled", "The server is shutting down", ["cancelled"])
    assert (store._tasks, store._timers, store._running) == ({}, {}, set())
    with pytest.raises(Overloaded, match="shutting down"):
        store.create(MINE, None, ignore)
    await store.close()


async def test_a_dropped_task_is_garbage() -> None:
    """Nothing keeps a reference to an expired task."""
    store = store_of()
    task = store.create(MINE, 0.001, ignore)
    await ended(task)
    known = weakref.ref(task)
    del task
    gc.collect()
    assert known() is None
