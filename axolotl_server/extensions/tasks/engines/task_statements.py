"""The statements that read and change stored tasks, independent of the database that executes them.

Each operation is a generator: it yields what the database must do and gets the rows. One transaction executes it, so
that the same rules hold in every store. Parameters are written `$1`.
"""

import secrets
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.task_engine import NewTask, Outcome, TaskQuestion, TaskRecord
from axolotl_server.extensions.tasks.engines.task_sealing import TaskPlace, TaskSealer, UnreadableTask, mark_of
from axolotl_server.extensions.tasks.engines.task_states import (
    LARGE_CALL_BYTES,
    MAX_BYTES,
    POLL_SECONDS,
    cancelled_by,
    now_text,
)
from axolotl_server.settings.server import ServerSettings

COLUMNS: Final = (
    "number, id, owner, tool, status, state, created_at, updated_at, ttl_seconds, expires_at, run, losses, message"
)
OPEN: Final = "call is not null"
"""The condition of tasks that have not ended, for which there is an index."""
_LENGTHS: Final = (1, 10, 100, 500)


class Enqueue(NamedTuple):
    """Puts a task into the queue of its tool."""

    tool: str
    task_id: str


class Execute(NamedTuple):
    """A statement of SQL, which may put a task into the queue at the same time."""

    sql: str
    arguments: tuple[Any, ...] = ()
    enqueue: Enqueue | None = None
    task_id: str | None = None
    """The only task whose row it can return; the same statement for other tasks may be executed with it."""
    lock: bytes | None = None
    """Where several transactions write at once, those with the same lock wait for each other."""
    changes: bool = False
    """Whether all processes are notified that the task has changed, if the statement returns a row."""


class Changed(NamedTuple):
    """Tells all processes that a task has changed, when the transaction is committed."""

    task_id: str


Row: TypeAlias = Sequence[Any]
ResultT = TypeVar("ResultT")
Operation: TypeAlias = Generator[Execute | Changed | Enqueue, Sequence[Row], ResultT]


class StoredTask(NamedTuple):
    """A row of the table of tasks."""

    number: int
    id: str
    owner: bytes
    tool: str
    status: Any
    state: str
    """Where it is: queued, running, parked or ended."""
    created_at: str
    updated_at: str
    ttl_seconds: float
    expires_at: float
    run: int
    losses: int
    """How many workers were lost while they ran it."""
    message: bytes | None

    @property
    def place(self) -> TaskPlace:
        """What the sealed values of the task are bound to."""
        return TaskPlace(self.id, self.owner, self.tool, self.expires_at)


def parameters(values: Sequence[str], first: int = 2) -> tuple[str, tuple[str, ...]]:
    """Write the parameters of a list, from a number on; repeated values make few lengths, which are prepared once."""
    size = next((size for size in _LENGTHS if size >= len(values)), len(values))
    padded = (*values, *(values[-1],) * (size - len(values)))
    return ", ".join(f"${first + index}" for index in range(size)), padded


class TaskStatements:
    """The operations on stored tasks."""

    max_bytes: ClassVar[int] = MAX_BYTES

    def __init__(self, settings: ServerSettings, sealer: TaskSealer, *, tables: str = "", locking: str = "") -> None:
        """Use tables with a prefix; `locking` is added to a read that precedes a write."""
        self._lease_seconds, self._maximum = settings.tasks.lease_seconds, settings.tasks.maximum
        self._of_caller = settings.limits.of_caller(self._maximum)
        self.sealer = sealer
        self.tasks, self.kept, self.messages = f"{tables}tasks", f"{tables}kept", f"{tables}messages"
        self.locking = locking

    def count(self) -> Operation[int]:
        """Count all tasks."""
        rows = yield Execute(f"select count(*) from {self.tasks}")
        return int(rows[0][0])

    def submit(self, task: NewTask, room: int) -> Operation[tuple[StoredTask, int]]:
        """Store a task and put it into the queue, or return the open task with the same key.

        `room` is how many tasks fit without counting them; the result contains how many fit now. With a key and several
        secrets, this must be atomic.
        """
        keys: Sequence[bytes | None] = (None,) if task.key is None else self.sealer.digests(task.key)
        key = keys[0]
        if key is not None:
            if self.sealer.rotates:  # one at a time: where another secret is the first, the key is another one
                yield from self._put(task.owner.hex(), "lock", "", b"")
            found = yield from self._with_key(task.owner, keys)
            if found is not None:
                return found, room
        if room <= 0:
            rows = yield Execute(f"select count(*) from {self.tasks} where {OPEN}")
            free = self._maximum - int(rows[0][0])
            if free <= 0:
                raise Overloaded("There are too many tasks; try again later", POLL_SECONDS)
            room = 1 + free // 8
        now = now_text()
        place = TaskPlace(secrets.token_hex(16), task.owner, task.tool, time.time() + task.ttl_seconds)
        call = self.sealer.seal(task.call, place, "call")
        size = len(call) if len(call) > LARGE_CALL_BYTES else 0
        limits = self._limits(task.share, size)
        rows = yield Execute(
            f"insert into {self.tasks} (id, owner, share, key, tool, status, state, created_at, updated_at,"
            " ttl_seconds, expires_at, run, losses, call)"
            " select $1, $2, $3, $4, $5, 'working', 'queued', $6, $7, $8, $9, 0, 0, $10"
            f" where {' and '.join(limits) or 'true'}"
            f" on conflict (owner, key) where key is not null do nothing returning {COLUMNS}",
            (
                *(place.id, task.owner, task.share, key, task.tool, now, now, task.ttl_seconds, place.expires_at),
                *((call, size) if size else (call,)),
            ),
            Enqueue(task.tool, place.id),
            place.id if key is None else None,  # keys of two processes, in another order, could block each other
            lock=task.share if limits else None,
        )
        if not rows:  # a limit is reached, or another process has just stored a task with the key
            found = None if key is None else (yield from self._with_key(task.owner, keys))
            if found is not None:
                return found, room
            yield from self._refuse(task.share, size)
            return (yield from self.submit(task, room))
        return StoredTask(*rows[0]), room - 1

    def _limits(self, share: bytes | None, size: int) -> list[str]:
        """Write the conditions of a new task: $3 is its share, and $11 the size of its call if that counts."""
        fits = f"(select coalesce(sum(length(call)) + $11 <= %d, true) from {self.tasks} where {OPEN}%s)"
        limits = [fits % (self.max_bytes, "")] if size else []
        if share is not None and size:
            limits.append(fits % (self.max_bytes // 2, " and share = $3"))
        if share is not None:
            limits.append(f"(select count(*) from {self.tasks} where {OPEN} and share = $3) < {self._of_caller}")
        return limits

    def _refuse(self, share: bytes | None, size: int) -> Operation[None]:
        """Raise Overloaded if the caller of a new task has too many, or if its call is too large for now."""
        if share is not None:
            rows = yield Execute(f"select count(*) from {self.tasks} where {OPEN} and share = $1", (share,))
            if rows[0][0] >= self._of_caller:
                message = f"Too many tasks: one caller may have {self._of_caller} open; try again when one has ended"
                raise Overloaded(message, POLL_SECONDS)
        if size:
            raise Overloaded("There are too many tasks with large arguments; try again later", POLL_SECONDS)

    def _with_key(self, owner: bytes, keys: Sequence[bytes | None]) -> Operation[StoredTask | None]:
        """Find the open task with one of some keys; one that has expired loses it."""
        is_own = f"owner = $1 and key in ({', '.join(f'${2 + index}' for index in range(len(keys)))})"
        is_expired = f"expires_at <= ${2 + len(keys)}"
        yield Execute(
            f"update {self.tasks} set key = null where {is_own} and {is_expired}", (owner, *keys, time.time())
        )
        rows = yield Execute(f"select {COLUMNS} from {self.tasks} where {is_own} order by number", (owner, *keys))
        return StoredTask(*rows[0]) if rows else None

    def read(self, task_ids: Sequence[str]) -> Operation[dict[str, TaskRecord | UnreadableTask]]:
        """Read tasks with their questions or outcomes; one that cannot be read does not affect the others."""
        marks, ids = parameters(task_ids)
        rows = yield Execute(
            f"select {COLUMNS}, outcome from {self.tasks} where expires_at > $1 and id in ({marks})",
            (time.time(), *ids),
            task_id=task_ids[0] if len(task_ids) == 1 else None,
        )
        asked: Sequence[Row] = ()
        if any(StoredTask(*row[:-1]).status == "input_required" for row in rows):
            asked = yield Execute(
                f"select task, key, value from {self.kept} where kind = $1 and task in ({marks})", ("question", *ids)
            )
        return {row[1]: self._described(row, asked) for row in rows}

    def _described(self, row: Row, asked: Sequence[Row]) -> TaskRecord | UnreadableTask:
        *columns, outcome = row
        task = StoredTask(*columns)
        try:
            questions = {
                key: _decode_question(self._open(value, task, "question", key))
                for task_id, key, value in asked
                if task_id == task.id and task.status == "input_required"
            }
            ended = None if outcome is None else _decode_outcome(self._open(outcome, task, "outcome"))
            return self.record(task, questions=questions, outcome=ended)
        except UnreadableTask as error:
            return error

    def owned(self, owner: bytes | None, after: int, count: int) -> Operation[tuple[TaskRecord, ...]]:
        """List tasks without their questions and outcomes."""
        condition = "number > $2" if owner is None else "number > $2 and owner = $3"
        arguments = (after,) if owner is None else (after, owner)
        return (yield from self._list(f"{condition} order by number", count, *arguments))

    def latest(self, count: int) -> Operation[tuple[TaskRecord, ...]]:
        """List the latest tasks of all owners, the latest first."""
        return (yield from self._list("true order by number desc", count))

    def _list(self, where: str, count: int, *arguments: Any) -> Operation[tuple[TaskRecord, ...]]:
        known = f"expires_at > $1 and ({OPEN} or outcome is not null)"
        rows = yield Execute(
            f"select {COLUMNS} from {self.tasks} where {known} and {where} limit {int(count)}",
            (time.time(), *arguments),
        )
        return tuple(self._listed(StoredTask(*row)) for row in rows)

    def _listed(self, task: StoredTask) -> TaskRecord:
        """Describe a task, without its text if that cannot be read: reading the task itself says why."""
        try:
            return self.record(task)
        except UnreadableTask:
            return self.record(task._replace(message=None))

    def state(self, task_id: str) -> Operation[StoredTask | None]:
        """Read only where a task is."""
        rows = yield Execute(f"select {COLUMNS} from {self.tasks} where id = $1", (task_id,))
        return StoredTask(*rows[0]) if rows else None

    def cancel(self, task_id: str, owner: bytes | None, reason: CancelReason) -> Operation[bool]:
        """End a task without a result."""
        task = yield from self.state(task_id)
        if task is None or owner not in (None, task.owner):
            return False
        ended = yield from self._end(
            "id = $1 and run >= $2 and state <> 'ended'", (task_id, 0), task.place, cancelled_by(reason)
        )
        if ended:
            yield from self._forget(task_id)
        return ended

    def cancel_all(self, reason: CancelReason) -> Operation[list[str]]:
        """End all tasks without results, and return the IDs of those that had not ended."""
        found = yield Execute(f"select id from {self.tasks} where {OPEN}")
        for (task_id,) in found:
            yield from self.cancel(task_id, None, reason)
        return [task_id for (task_id,) in found]

    def answer(self, task_id: str, owner: bytes, answers: Mapping[str, bytes]) -> Operation[frozenset[str]]:
        """Store answers to open questions; a task that was parked goes back into the queue."""
        rows = yield Execute(
            f"select {COLUMNS} from {self.tasks} where id = $1 and owner = $2 and state <> 'ended'"
            f" and expires_at > $3{self.locking}",
            (task_id, owner, time.time()),
        )
        if not rows:
            return frozenset()
        task = StoredTask(*rows[0])
        asked = yield Execute(f"select key, value from {self.kept} where task = $1 and kind = 'question'", (task_id,))
        taken = {key: bytes(question) for key, question in asked if key in answers}
        for key, question in taken.items():
            value = self.sealer.seal(mark_of(question) + answers[key], task.place, "answer", key)
            yield from self._put(task_id, "answer", key, value)
        if not taken:
            return frozenset()
        yield from self._remove_questions(task_id, taken)
        if task.state == "parked":
            yield Execute(f"update {self.tasks} set state = 'queued' where id = $1", (task_id,))
            yield Enqueue(task.tool, task_id)
        yield Changed(task_id)
        return frozenset(taken)

    def end_unreadable(self, task_id: str, outcome: Outcome) -> Operation[None]:
        """End a task whose values cannot be read."""
        task = yield from self.state(task_id)
        if task is not None:
            yield from self._end("id = $1 and run >= $2", (task_id, 0), task.place, outcome)
            yield from self._forget(task_id)

    def take_messages(self, records: Sequence[TaskRecord]) -> Operation[Mapping[str, Sequence[bytes]]]:
        """Remove the messages of tasks in order to send them."""
        marks, ids = parameters([record.id for record in records], first=1)
        rows = yield Execute(f"delete from {self.messages} where task in ({marks}) returning task, number, value", ids)
        places = {one.id: TaskPlace(one.id, one.owner, one.tool, one.expires_at) for one in records}
        messages: dict[str, list[bytes]] = {}
        for task_id, _, value in sorted(map(tuple, rows), key=lambda row: row[1]):
            with suppress(UnreadableTask):  # it was changed in the store, and others were not
                message = self.sealer.open(bytes(value), places[task_id], "message")
                messages.setdefault(task_id, []).append(message)
        return messages

    def record(
        self, task: StoredTask, *, questions: Mapping[str, TaskQuestion] | None = None, outcome: Outcome | None = None
    ) -> TaskRecord:
        """Describe a task."""
        message = None if task.message is None else self._open(task.message, task, "text").decode()
        return TaskRecord(
            id=task.id,
            number=task.number,
            owner=bytes(task.owner),
            tool=task.tool,
            created_at=task.created_at,
            updated_at=task.updated_at,
            ttl_seconds=task.ttl_seconds,
            expires_at=task.expires_at,
            status=task.status,
            message=message,
            run=task.run,
            questions=questions or {},
            outcome=outcome,
        )

    def _end(self, condition: str, arguments: tuple[Any, ...], place: TaskPlace, outcome: Outcome) -> Operation[bool]:
        message = None if outcome.message is None else self.sealer.seal(outcome.message.encode(), place, "text")
        rows = yield Execute(
            f"update {self.tasks} set state = 'ended', status = $3, outcome = $4, message = $5, updated_at = $6,"
            f" call = null, key = null where {condition} returning id",
            (
                *arguments,
                outcome.status,
                self.sealer.seal(msgspec.msgpack.encode(outcome), place, "outcome"),
                message,
                now_text(),
            ),
            task_id=place.id,
            changes=True,
        )
        return bool(rows)

    def _put(self, task_id: str, kind: str, key: str, value: bytes) -> Operation[None]:
        yield Execute(
            f"insert into {self.kept} (task, kind, key, value) values ($1, $2, $3, $4)"
            " on conflict (task, kind, key) do update set value = excluded.value",
            (task_id, kind, key, value),
        )

    def _remove_questions(self, task_id: str, keys: Iterable[str]) -> Operation[None]:
        """Remove questions; without any, the task works again."""
        for key in keys:
            yield Execute(f"delete from {self.kept} where task = $1 and kind = 'question' and key = $2", (task_id, key))
        yield Execute(
            f"update {self.tasks} set status = 'working', updated_at = $2 where id = $1"
            f" and not exists (select 1 from {self.kept} where task = $1 and kind = 'question')",
            (task_id, now_text()),
        )

    def _forget(self, task_id: str) -> Operation[None]:
        """Delete the answers and steps of a task that has ended; its last messages stay for those who follow it."""
        yield Execute(f"delete from {self.kept} where task = $1", (task_id,))

    def _open(self, value: Any, task: StoredTask, kind: str, key: str = "") -> bytes:
        if not isinstance(value, bytes):
            raise UnreadableTask(f"task {task.id}: its {kind} cannot be used: it has a wrong type")
        return self.sealer.open(value, task.place, kind, key)


_decode_question: Final = msgspec.json.Decoder(TaskQuestion).decode
_decode_outcome: Final = msgspec.msgpack.Decoder(Outcome).decode
