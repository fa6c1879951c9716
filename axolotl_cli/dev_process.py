"""A worker of `axolotl dev`, as its supervisor sees it."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

from axolotl_cli.worker_process import WorkerProcess

__all__ = ["DevProcess"]

_UNSAID = "The process ended before it was ready to serve"


class DevProcess(WorkerProcess):
    """A process that serves some state of the code, or says why it cannot."""

    def __init__(self, number: int, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.handed_over = asyncio.Event()
        """Whether nobody reaches it any more but those whose calls it runs."""
        super().__init__(number, process, end)

    # -B: what is compiled within the same second as a change would be taken for the change.
    program = ("-B", "-m", "axolotl_cli.dev_worker")

    problem: str | None = None
    """Why it does not serve; None where it does, or may."""
    said: Mapping[str, Any] = {}
    """What it serves, once it does."""

    def tell(self, problem: str | None) -> None:
        """Let its console know that newer code cannot be started, or that it is all right again."""
        self._channel.say({"type": "problem", "problem": problem})

    def replace(self, changed: list[str]) -> None:
        """Have it leave everything new to another process, after it told its clients which lists changed."""
        self._channel.say({"type": "retire", "changed": changed})

    def _hear(self, message: Mapping[str, Any], handed: socket.socket | None) -> None:
        if message["type"] == "ready":
            self.said = message
        elif message["type"] == "handed_over":
            self.handed_over.set()
        elif message["type"] == "failed":
            self.problem = message["problem"]
        super()._hear(message, handed)

    def _leave(self) -> None:
        self.handed_over.set()
        if not self.ready.done():
            self.problem = self.problem or _UNSAID
        super()._leave()
