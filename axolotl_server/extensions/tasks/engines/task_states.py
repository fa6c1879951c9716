"""The states of tasks: times, endings and refusals, which all engines share."""

import re
from datetime import UTC, datetime
from typing import Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.task_engine import Outcome
from axolotl_server.settings.calls import TaskSettings

UNREADABLE: Final = Outcome("failed", "The stored task cannot be read: it was changed")
LARGE_CALL_BYTES: Final = 64 * 1024
"""The size above which a call counts in bytes; smaller ones are limited by their number."""
ENDED_BYTES: Final = 2048
"""What an ended task counts in addition to its result: about what it takes in memory."""
MOST_ENDED: Final = 10_000
"""How many ended tasks of one caller are kept with their results."""
MOST_DROPPED: Final = 10_000
"""How many tasks whose results were dropped are remembered."""
_TASK_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ENDINGS: Final = {
    CancelReason.CLIENT: "The caller cancelled the task",
    CancelReason.OPERATOR: "An operator cancelled the task",
    CancelReason.DISCONNECT: "The caller has disconnected",
    CancelReason.TIMEOUT: "The task has expired",
    CancelReason.SHUTDOWN: "The server is shutting down",
    CancelReason.LOST: "The worker that ran it is gone",
}


def cancelled_by(reason: CancelReason) -> Outcome:
    """Describe the end of a task that was cancelled."""
    return Outcome("cancelled", _ENDINGS[reason])


def reason_in(message: str | None) -> CancelReason:
    """Find out who cancelled a task from the message that it ended with."""
    return CancelReason.OPERATOR if message == _ENDINGS[CancelReason.OPERATOR] else CancelReason.CLIENT


def is_task_id(text: str) -> bool:
    """Whether a task can have an ID; a database may not even accept others."""
    return _TASK_ID.fullmatch(text) is not None


def now_text() -> str:
    """Return the time in the form of the protocol."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def most_ended(settings: TaskSettings, share: bytes | None) -> int | None:
    """Return how many ended tasks are kept of one caller; None if only their bytes are limited."""
    limit = settings.maximum_per_principal
    return None if limit is None or share is None else max(MOST_ENDED, limit)


def shutting_down(settings: TaskSettings) -> Overloaded:
    """Make the error for a task that comes too late."""
    return Overloaded("The server is shutting down; try again", settings.poll_interval_seconds)


def too_many(settings: TaskSettings) -> Overloaded:
    """Make the error for a task that exceeds the limit of the server."""
    return Overloaded("There are too many tasks; try again later", settings.poll_interval_seconds)


def too_many_of_one(settings: TaskSettings) -> Overloaded:
    """Make the error for a task that exceeds the limit of its caller."""
    limit = settings.maximum_per_principal
    return Overloaded(
        f"Too many tasks: one caller may have {limit} open; try again when one has ended",
        settings.poll_interval_seconds,
    )


def too_large_together(settings: TaskSettings) -> Overloaded:
    """Make the error for a task whose arguments, with those of others, take too much memory."""
    return Overloaded("There are too many tasks with large arguments; try again later", settings.poll_interval_seconds)
