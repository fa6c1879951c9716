"""The supervisor of `axolotl dev`, from the command line to its end."""

import asyncio
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from axolotl_cli.development.file_watch import changes_in, project_directories, require_watchfiles
from axolotl_cli.development.report import DevReport
from axolotl_cli.serving.worker_process import WorkerProcess
from axolotl_cli.target import resolve_target
from axolotl_core.errors import ConfigurationError
from axolotl_server.urls import is_loopback

_UNSAID = "The process ended before it was ready to serve"


class DevProcess(WorkerProcess):
    """A process that serves some state of the code, or says why it cannot."""

    def __init__(self, number: int, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.handed_over = asyncio.Event()
        """Whether nobody reaches it any more but those whose calls it runs."""
        super().__init__(number, process, end)

    # -B: what is compiled within the same second as a change would be taken for the change.
    program = ("-B", "-m", "axolotl_cli.development.dev_worker")

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


_START_SECONDS: Final = 60.0
_HAND_OVER_SECONDS: Final = 3.0
_PATIENT_SECONDS: Final = 3.0
_HASTY_SECONDS: Final = 5.0


class DevSupervisor:
    """Starts a process for the code as it is, anew whenever that changes; the one before ends what it has begun."""

    def __init__(self, order: Mapping[str, Any], report: DevReport) -> None:
        # What one process seals, another that takes over has to open.
        self._order = {**order, "state_key": secrets.token_urlsafe(32)}
        self._report = report
        self._listener: socket.socket | None = None
        self._current: DevProcess | None = None
        self._living: set[DevProcess] = set()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stops = 0

    def stop(self) -> None:
        """End everything; told again, in haste."""
        self._stops += 1
        self._stopping.set()
        if self._stops > 1:
            for worker in tuple(self._living):
                worker.terminate()

    async def run(self, changes: AsyncIterator[Sequence[str]]) -> None:
        """Serve until `stop` is called."""
        watching = asyncio.ensure_future(self._watch(changes))
        try:
            while not self._stopping.is_set():
                self._changed.clear()
                await self._renew()
                await self._until_something_happens()
        finally:
            watching.cancel()
            await self._end_all()
            if self._listener is not None:
                self._listener.close()

    async def _watch(self, changes: AsyncIterator[Sequence[str]]) -> None:
        async for changed in changes:
            self._report.changed(changed)
            self._changed.set()

    async def _renew(self) -> None:
        """Start a process for the code as it is, and let it take over if it can."""
        began = time.monotonic()
        worker = await DevProcess.start(self._free_number(), self._order, self._listener)
        self._living.add(worker)
        worker.gone.add_done_callback(lambda _: self._living.discard(worker))
        interrupted = await self._interrupted(worker.ready, _START_SECONDS)
        self._listener = worker.listener or self._listener
        if worker.serves:
            await self._take_over(worker)
            self._report.serves(worker.said, time.monotonic() - began)
            return
        worker.kill()
        if not interrupted:
            problem = worker.problem or f"It did not start within {_START_SECONDS:g} seconds"
            self._report.failed(problem, serving=self._current is not None)
            if self._current is not None:
                self._current.tell(problem)

    async def _take_over(self, worker: DevProcess) -> None:
        """Let a process serve in the place of another; waits until nobody gets answers of the old code any more."""
        before, self._current = self._current, worker
        if before is None:
            return
        old, new = before.said["lists"], worker.said["lists"]
        before.replace([kind for kind in new if old.get(kind) != new[kind]])
        due = asyncio.get_running_loop().call_later(before.patience_seconds + _HASTY_SECONDS, before.kill)
        before.gone.add_done_callback(lambda _: due.cancel())
        with suppress(TimeoutError):
            async with asyncio.timeout(_HAND_OVER_SECONDS):
                await before.handed_over.wait()

    async def _until_something_happens(self) -> None:
        """Wait for a change, or for the wish to stop; a server that ends by itself is not started again unchanged."""
        current = self._current
        if current is not None and not await self._interrupted(current.gone):
            self._current = None
            self._report.ended(current.ending)
            current = None
        if current is None:
            await self._interrupted(asyncio.get_running_loop().create_future())

    async def _interrupted(self, what: asyncio.Future[Any], seconds: float | None = None) -> bool:
        """Wait for something; answers whether a change, or the wish to stop, came before it."""
        interruptions: list[Coroutine[Any, Any, bool]] = [self._changed.wait(), self._stopping.wait()]
        tasks = [asyncio.ensure_future(one) for one in interruptions]
        await asyncio.wait((what, *tasks), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        interrupted = not what.done() and any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        return interrupted

    async def _end_all(self) -> None:
        """Tell all processes to end: at first in order, then in haste, then at once."""
        for seconds in (_PATIENT_SECONDS, _HASTY_SECONDS):
            for worker in tuple(self._living):
                worker.terminate()
            if self._living:
                await asyncio.wait([worker.gone for worker in self._living], timeout=seconds)
        for worker in tuple(self._living):
            worker.kill()
            await worker.gone

    def _free_number(self) -> int:
        taken = {worker.number for worker in self._living}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)


_DRAIN_SECONDS: Final = 300.0
"""How long calls of code that was replaced may go on; nobody waits for them but their callers."""


def serve_while_developing(
    target: str | None,
    toolsets: Sequence[str] | None,
    flags: Mapping[str, Any],
    env_file: Path | None,
    watched: Sequence[Path],
) -> None:
    """Serve, and take over changes until the process is told to stop.

    Raises:
        ConfigurationError: if the extra is missing, the settings are wrong, or others could reach the server.
    """
    require_watchfiles()
    choice = resolve_target(target, toolsets, flags, env_file)
    host = choice.settings.http.host
    if not is_loopback(host):
        raise ConfigurationError(f"axolotl dev serves this machine alone, not {host!r}: use axolotl serve for others")
    order = {
        "target": target,
        "toolsets": list(choice.toolsets),
        "env_file": None if env_file is None else str(env_file),
    }
    directories = project_directories(choice.target, watched)
    with TemporaryDirectory(prefix="axolotl-dev-") as shared:
        asyncio.run(_supervise({**order, "flags": _lasting(flags, shared)}, directories))


def _lasting(flags: Mapping[str, Any], shared: str) -> dict[str, Any]:
    """Let calls and sessions outlive the process that they began in."""
    http = {"drain_seconds": _DRAIN_SECONDS, "drain_delay_seconds": 0, **flags.get("http", {})}
    return {**flags, "http": http, "sessions": {"directory": shared}}


async def _supervise(order: Mapping[str, Any], directories: Sequence[Path]) -> None:
    supervisor = DevSupervisor(order, DevReport(directories))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, supervisor.stop)
    await supervisor.run(changes_in(directories))
