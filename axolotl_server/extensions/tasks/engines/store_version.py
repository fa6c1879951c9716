"""The version of a store of tasks, and the statements that bring an older store up to date."""

from collections.abc import Iterator, Sequence
from typing import Final

from axolotl_core.errors import ConfigurationError

_KEYS: Final = (
    "update {tables}tasks set key = null where key is not null and (state = 'ended' or number not in"
    " (select min(number) from {tables}tasks where state <> 'ended' and key is not null group by owner, key))",
    "drop index if exists {tables}tasks_by_key",
    "create unique index tasks_by_key on {tables}tasks (owner, key) where key is not null",
)
_OPEN: Final = (
    "drop index if exists {tables}tasks_by_share",
    "create index if not exists tasks_open on {tables}tasks (share) where call is not null",
)
_QUEUE: Final = (
    "alter table tasks add column worker text",
    "alter table tasks add column due_at real not null default 0",
    "create index tasks_queue on tasks (number, tool) where state in ('queued', 'running')",
    "create table if not exists jobs (payload blob, status text, heartbeat real, execute_after real)",
    "update tasks set due_at = job.due_at from (select cast(payload as text) as id, cast(max(case status when 'picked'"
    " then heartbeat + 30 else execute_after end) as real) as due_at from jobs group by 1) as job"
    " where job.id = tasks.id and job.due_at is not null",
    "drop table jobs",
)
"""In SQLite, the table of tasks is the queue; a worker that still has a job gets its time to end it."""
_NO_VERSION: Final = ("alter table {tables}tasks drop column version",)
SQLITE_STEPS: Final = (_KEYS, _OPEN, (*_NO_VERSION, *_QUEUE))
POSTGRES_STEPS: Final = (_KEYS, _OPEN, _NO_VERSION)
"""The statements that lead from each version to the next; version 0 has no number in the store, and may be empty."""

STORE_VERSION: Final = len(SQLITE_STEPS)


def steps_from(version: int, steps: Sequence[Sequence[str]], tables: str = "") -> Iterator[str]:
    """Return the statements that bring a store up to date; the names of tables get a prefix."""
    return (statement.format(tables=tables) for step in steps[version:] for statement in step)


def check_not_newer(version: int) -> None:
    """Raise ConfigurationError for a store that a newer version of Axolotl has made."""
    if version > STORE_VERSION:
        raise ConfigurationError(
            f"Setting tasks.url: the store has version {version}, and this server knows only {STORE_VERSION}: "
            "update Axolotl, or use another store"
        )


def check_up_to_date(version: int) -> None:
    """Raise ConfigurationError for a store that this server cannot use."""
    check_not_newer(version)
    if version < STORE_VERSION:
        raise ConfigurationError(
            "Setting tasks.url: the database has no tables for tasks, or those of an older version: "
            "run axolotl tasks prepare"
        )
