"""What a run knows of a server: IDs that it gave out, and faults."""

import base64
from dataclasses import dataclass
from typing import Any, Final

from tests.fuzz.corpus import STATE, TASK

_SHOWN: Final = 300


class KnownValues:
    """Values that the server gave out, which later messages use."""

    def __init__(self) -> None:
        self._tasks: dict[str, str] = {}
        self._state = "none"

    def fill(self, revision: str, body: bytes) -> bytes:
        """Put known values into a message."""
        if b"@" not in body:
            return body
        task = self._tasks.get(revision, "00000000000000000000000000000000")
        return body.replace(TASK.encode(), task.encode()).replace(STATE.encode(), self._state.encode())

    def learn(self, revision: str, reply: Any) -> None:
        """Remember values of a reply."""
        result = reply.get("result") if isinstance(reply, dict) else None
        if not isinstance(result, dict):
            return
        task = result.get("task", result)
        if isinstance(task, dict) and isinstance(task.get("taskId"), str):
            self._tasks[revision] = task["taskId"]
        if isinstance(result.get("requestState"), str):
            self._state = result["requestState"]


@dataclass(frozen=True)
class Fault:
    """A broken promise, and the message that showed it."""

    transport: str
    number: int
    revision: str
    sent: bytes
    text: str
    reply: bytes = b""

    def describe(self, seed: int) -> str:
        """Describe the fault with the commands that repeat it."""
        sent = base64.b64encode(self.sent).decode()
        return "\n".join(
            (
                f"message {self.number} of seed {seed}, {self.transport}, {self.revision}: {self.text}",
                f"  sent    {self.sent[:_SHOWN]!r}",
                f"  reply   {self.reply[:_SHOWN]!r}",
                f"  repeat  python -m tests.fuzz --seed {seed} --first {self.number} --messages 1",
                f"  replay  python -m tests.fuzz --replay {self.transport} {self.revision} {sent}",
            )
        )
