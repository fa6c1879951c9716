"""The states of tasks: their times, endings and limits."""

import re
from datetime import UTC, datetime
from typing import Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.task_engine import Outcome

POLL_SECONDS: Final = 1.0
"""How often a client should poll a task, and how long it should wait after a refusal."""
UNREADABLE: Final = Outcome("failed", "The stored task cannot be read: it was changed")
MAX_BYTES: Final = 64 * 1024 * 1024
"""How many bytes of results are kept, and how many bytes the large arguments of open tasks may have."""
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
