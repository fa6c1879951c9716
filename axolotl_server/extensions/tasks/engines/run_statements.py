"""The statements of a run, each of which counts only while the run is the current one of its task.

Before them, those that count what a store keeps, and delete what is too old or too much.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from axolotl_core.protocol.wire import encode
from axolotl_core.task_engine import Outcome, TaskQuestion
from axolotl_server.extensions.tasks.engines.task_sealing import MARK_BYTES
from axolotl_server.extensions.tasks.engines.task_statements import (
    COLUMNS,
    OPEN,
    Changed,
    Enqueue,
    Execute,
    Operation,
    Row,
    StoredTask,
    TaskStatements,
    parameters,
)
from axolotl_server.extensions.tasks.engines.task_states import (
    ENDED_BYTES,
    LARGE_CALL_BYTES,
    MOST_DROPPED,
    MOST_ENDED,
    now_text,
)

_MAX_MESSAGES: Final = 100
"""How many messages of a task wait for a client."""


class StartedRun(NamedTuple):
    """A run that has just begun."""

    task: StoredTask
    call: bytes
    answers: Mapping[str, bytes]
    kept: Mapping[str, bytes]
    lost: bool
    """Whether the worker of an earlier run was lost."""
    job: Any = None
    """Its place in the queue, if that is not the task itself."""


class RunStatements(TaskStatements, ABC):
    """The operations on stored tasks, including those of runs; each kind of queue adds its own."""

    def count_open(self) -> Operation[tuple[dict[tuple[str, str], int], int]]:
        """Count the tasks that have not ended by tool and status, and those that are parked."""
        rows = yield Execute(
            f"select tool, state, run, status, count(*) from {self.tasks} where state <> 'ended'"
            " group by tool, state, run, status"
        )
        counts: Counter[tuple[str, str]] = Counter()
        parked = 0
        for tool, state, run, status, count in rows:
            counts[str(tool), "queued" if state == "queued" and not run else str(status)] += int(count)
            parked += int(count) if state == "parked" else 0
        return counts, parked

    def unclaimed(self, seconds: float) -> Operation[dict[str, int]]:
        """Count the tasks that no worker has begun for some seconds, by tool."""
        rows = yield Execute(
            f"select tool, count(*) from {self.tasks} where state = 'queued' and run = 0"
            " and expires_at - ttl_seconds < $1 group by tool",
            (time.time() - seconds,),
        )
        return {str(tool): int(count) for tool, count in rows}

    def drop_expired(self) -> Operation[list[str]]:
        """Delete tasks whose time is up, and everything that belongs to no task."""
        rows = yield Execute(f"delete from {self.tasks} where expires_at <= $1 returning id", (time.time(),))
        for (task_id,) in rows:
            yield Changed(task_id)
        for table in (self.kept, self.messages):
            yield Execute(f"delete from {table} where task not in (select id from {self.tasks})")
        return [task_id for (task_id,) in rows]

    def next_expiry(self) -> Operation[float | None]:
        """Read when the next task expires; None if there is none."""
        rows = yield Execute(f"select min(expires_at) from {self.tasks}")
        found: float | None = rows[0][0]
        return found

    def count_bytes(self) -> Operation[int]:
        """Read how many bytes count for results."""
        rows = yield Execute(f"select sum(length(outcome) + {ENDED_BYTES}) from {self.tasks}")
        return int(rows[0][0] or 0)

    def drop_results(self) -> Operation[None]:
        """Drop the oldest results of callers that have too many, or too much while there is too much in all.

        A task without its result stays for a while, so that its caller learns what has happened.
        """
        ended = f"from {self.tasks} where outcome is not null"
        rows = yield Execute(f"select share, count(*), sum(length(outcome) + {ENDED_BYTES}) {ended} group by share")
        most = max(MOST_ENDED, self._of_caller)
        level = _level((int(size) for _, _, size in rows), self.max_bytes)
        if any(size > level or count > most for _, count, size in rows):
            of_share = "over (partition by share order by updated_at desc, number desc)"
            yield Execute(
                f"update {self.tasks} set outcome = null, message = null where outcome is not null and number in"
                f" (select number from (select number, share, row_number() {of_share} as place,"
                f" sum(length(outcome) + {ENDED_BYTES}) {of_share} as size {ended}) as results"
                f" where size > $1 or (place > {most} and share is not null))",
                (level,),
            )
        dropped = f"from {self.tasks} where outcome is null and state = 'ended'"
        yield Execute(
            f"delete {dropped} and number <="
            f" (select number {dropped} order by number desc limit 1 offset {MOST_DROPPED})"
        )

    def size(self, task_id: str) -> Operation[int]:
        """Read how many bytes a run would load: the call, and what earlier runs have kept; 0 if it is not large."""
        kept = f"select coalesce(sum(length(value)), 0) from {self.kept} where task = $1"
        rows = yield Execute(f"select length(call) + ({kept}) from {self.tasks} where id = $1 and {OPEN}", (task_id,))
        size = int(rows[0][0]) if rows else 0
        return size if size > LARGE_CALL_BYTES else 0

    def begin(self, task_id: str) -> Operation[StartedRun | None]:
        """Begin the next run of a task that a worker has taken; None if there is nothing to run."""
        rows = yield Execute(f"select {COLUMNS}, call from {self.tasks} where id = $1{self.locking}", (task_id,))
        if not rows:
            return None
        *columns, call = rows[0]
        task = StoredTask(*columns)
        if task.state not in ("queued", "running") or task.expires_at <= time.time():
            return None
        answers: dict[str, bytes] = {}
        kept: dict[str, bytes] = {}
        if task.run:
            yield Execute(f"delete from {self.kept} where task = $1 and kind = 'question'", (task_id,))
            values = yield Execute(f"select kind, key, value from {self.kept} where task = $1", (task_id,))
            for kind, key, value in values:
                if kind == "answer":
                    _, answers[key] = self.open_answer(task, key, value)
                else:
                    kept[key] = self._open(value, task, kind, key)
        opened = self._open(call, task, "call")
        lost = task.state == "running"
        rows = yield Execute(
            f"update {self.tasks} set run = run + 1, losses = losses + $2, state = 'running', status = 'working'"
            f" where id = $1 returning {COLUMNS}",
            (task_id, int(lost)),
        )
        return StartedRun(StoredTask(*rows[0]), opened, answers, kept, lost)

    def end(self, task: StoredTask, outcome: Outcome, *, tidy: bool = True) -> Operation[bool]:
        """End a task if this is its current run; `tidy` if it may have kept something."""
        ended = yield from self._end(
            "id = $1 and run = $2 and state = 'running'", (task.id, task.run), task.place, outcome
        )
        if ended and tidy:
            yield from self._forget(task.id)
        return ended

    def seal_question(self, task: StoredTask, key: str, question: TaskQuestion) -> bytes:
        """Encrypt a question."""
        return self.sealer.seal(encode(question), task.place, "question", key)

    def ask(self, task: StoredTask, key: str, question: bytes) -> Operation[bool]:
        """Publish a sealed question, and drop an earlier answer with its key."""
        rows = yield Execute(
            f"update {self.tasks} set status = 'input_required', updated_at = $3"
            " where id = $1 and run = $2 and state = 'running' returning id",
            (task.id, task.run, now_text()),
        )
        if not rows:
            return False
        yield Execute(f"delete from {self.kept} where task = $1 and kind = 'answer' and key = $2", (task.id, key))
        yield from self._put(task.id, "question", key, question)
        yield Changed(task.id)
        return True

    def withdraw(self, task: StoredTask, key: str) -> Operation[None]:
        """Remove a question."""
        rows = yield Execute(
            f"select id from {self.tasks} where id = $1 and run = $2 and state = 'running'{self.locking}",
            (task.id, task.run),
        )
        if rows:
            yield from self._remove_questions(task.id, [key])
            yield Changed(task.id)

    def states(
        self, task_ids: Sequence[str], asking: Sequence[str]
    ) -> Operation[tuple[dict[str, StoredTask], Sequence[Row]]]:
        """Read where tasks are, and the sealed answers to those that ask: task, key and value of each."""
        marks, ids = parameters(task_ids, first=1)
        rows = yield Execute(f"select {COLUMNS} from {self.tasks} where id in ({marks})", tuple(ids))
        answers: Sequence[Row] = ()
        if asking:
            marks, ids = parameters(asking)
            answers = yield Execute(
                f"select task, key, value from {self.kept} where kind = $1 and task in ({marks})", ("answer", *ids)
            )
        return {row[1]: StoredTask(*row) for row in rows}, answers

    def open_answer(self, task: StoredTask, key: str, value: bytes) -> tuple[bytes, bytes]:
        """Decrypt an answer, and return it after the mark of its question, or raise UnreadableTask."""
        answer = self._open(value, task, "answer", key)
        return answer[:MARK_BYTES], answer[MARK_BYTES:]

    def park(self, started: StartedRun, keys: Iterable[str]) -> Operation[bool]:
        """Free the run of a task that waits for answers; False if one of them has arrived.

        Its place in the queue goes at the same time: the answer makes a new one, and a task must not have two. A run
        that is parked already is parked: the reply to the first attempt may have been lost.
        """
        task = started.task
        rows = yield Execute(
            f"select id from {self.tasks} where id = $1 and run = $2 and state in ('running', 'parked'){self.locking}",
            (task.id, task.run),
        )
        wanted = set(keys)
        found = yield Execute(f"select key from {self.kept} where task = $1 and kind = 'answer'", (task.id,))
        if not rows or any(key in wanted for (key,) in found):
            return False
        yield Execute(f"update {self.tasks} set state = 'parked' where id = $1", (task.id,))
        yield from self._leave(started)
        return True

    def keep(self, task: StoredTask, key: str, value: bytes) -> Operation[bool]:
        """Store a value for later runs."""
        rows = yield Execute(
            f"select id from {self.tasks} where id = $1 and run = $2 and state = 'running'{self.locking}",
            (task.id, task.run),
        )
        if rows:
            yield from self._put(task.id, "step", key, self.sealer.seal(value, task.place, "step", key))
        return bool(rows)

    def release(self, started: StartedRun) -> Operation[bool]:
        """Put a task back into the queue, at a new place."""
        task = started.task
        rows = yield Execute(
            f"update {self.tasks} set state = 'queued', status = 'working'"
            " where id = $1 and run = $2 and state = 'running' returning id",
            (task.id, task.run),
        )
        if rows:
            yield from self._leave(started)
            yield Enqueue(task.tool, task.id)
            yield Changed(task.id)
        return bool(rows)

    def suspend(self, task: StoredTask) -> Operation[None]:
        """Note that a task waits for a worker that can run it; its place in the queue stays."""
        yield Execute(
            f"update {self.tasks} set state = 'queued' where id = $1 and run = $2 and state = 'running'",
            (task.id, task.run),
        )

    def send(self, task: StoredTask, messages: Sequence[bytes]) -> Operation[None]:
        """Store messages for a client that may listen to another process; the oldest are dropped."""
        for message in messages:
            yield Execute(
                f"insert into {self.messages} (task, value) select $1, $2 from {self.tasks}"
                " where id = $1 and run = $3 and state = 'running'",
                (task.id, self.sealer.seal(message, task.place, "message"), task.run),
            )
        yield Execute(
            f"delete from {self.messages} where task = $1 and number <= (select max(number) from {self.messages}"
            f" where task = $1) - {_MAX_MESSAGES}",
            (task.id,),
        )
        yield Changed(task.id)

    @abstractmethod
    def _leave(self, started: StartedRun) -> Operation[None]:
        """Give up the place of a run in the queue, unless another worker has it now."""


def _level(sizes: Iterable[int], limit: int) -> int:
    """Return what the largest may keep so that all together stay within a limit."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        if size > (fair := limit // (len(ordered) - index)):
            return fair
        limit -= size
    return max(ordered, default=0)
