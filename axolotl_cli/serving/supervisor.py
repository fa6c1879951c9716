"""The supervisor of worker processes, for `axolotl serve --workers` and `axolotl dev`."""

import asyncio
import logging
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from axolotl_cli.exit import ExitCode
from axolotl_cli.serving.shared_folder import sessions_directory
from axolotl_cli.serving.worker_process import MARGIN_SECONDS, WorkerOrder, WorkerProcess
from axolotl_cli.target import ChosenTarget
from axolotl_core.errors import ConfigurationError

_log: Final = logging.getLogger("axolotl")

_FAILED: Final = 1
"""The exit code if workers do not start, or do not stop, although the configuration is valid."""
_MAX_FAILURES: Final = 3
"""How many workers in a row may end before they serve."""
_SHORT_LIFE_SECONDS: Final = 1.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0
_PINGS_PER_TIMEOUT: Final = 5
_KILL_AFTER_STOPS: Final = 3
_HURRY_SECONDS: Final = 5.0
_HAND_OVER_SECONDS: Final = 3.0
_DEV_START_SECONDS: Final = 60.0
_DEV_STOP_SECONDS: Final = 3.0


@dataclass(slots=True)
class _Slot:
    """The place of one worker, which a new one takes when the worker ends or the code is reloaded."""

    worker: WorkerProcess | None = None
    pause_seconds: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def lengthen_pause(self) -> None:
        self.pause_seconds = min(max(2 * self.pause_seconds, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)


class WorkerLog:
    """Logs what happens to workers."""

    def reloading(self, files: Sequence[str]) -> None:
        _log.info("reloading: each worker is replaced by a new one")

    def started(self, worker: WorkerProcess) -> None:
        _log.info("worker %d (process %d) serves", worker.number, worker.pid)
        if worker.description["address_changed"]:
            _log.warning("the address in the settings changed: start the server again to listen there")

    def serving(self, workers: Sequence[WorkerProcess], seconds: float, *, is_reload: bool) -> None:
        pids = ", ".join(str(worker.pid) for worker in workers)
        if is_reload:
            _log.info("reloaded: %s", pids)
        else:
            _log.info("%d %s: %s", len(workers), "worker serves" if len(workers) == 1 else "workers serve", pids)

    def failed(self, worker: WorkerProcess, *, is_reload: bool, is_serving: bool) -> None:
        _log.error("worker %d (process %d) %s before it served", worker.number, worker.pid, worker.ending)
        if is_reload:
            _log.error("the reload failed: workers that were not replaced keep serving")

    def given_up(self) -> None:
        _log.critical("no worker serves, and none can be started: giving up")

    def ended(self, worker: WorkerProcess) -> None:
        _log.error("worker %d (process %d) %s: starting another", worker.number, worker.pid, worker.ending)


class Supervisor:
    """Keeps a number of workers running; holds the listening socket but serves no client itself.

    Each worker is a new interpreter. So workers share nothing by accident, and a worker that is started later runs the
    code and the settings of that time: that is a reload.
    """

    def __init__(
        self, order: WorkerOrder, count: int, reloads: AsyncIterator[Sequence[str]], report: WorkerLog
    ) -> None:
        """Take an order for all workers.

        Each item of `reloads` names the files that changed, if that is known, and causes a reload. In development, a
        worker that ends or fails to start is replaced at the next reload only.
        """
        self._order = replace(order, state_key=secrets.token_urlsafe(32))
        self._reloads = reloads
        self._report = report
        self._is_development = order.is_development
        self._listener: socket.socket | None = None
        self._slots = [_Slot() for _ in range(count)]
        self._living: dict[WorkerProcess, None] = {}
        """All workers that run, oldest first, including those that no longer have a slot."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._stopping = asyncio.Event()
        self._stops = 0
        self._code = 0
        self._reload_requested = asyncio.Event()

    async def run(self) -> int:
        """Serve until the process is stopped, or workers cannot be started; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            await self._serve()
        finally:
            self._stopping.set()
            await self._end_all()
            if self._listener is not None:
                self._listener.close()
        return self._code

    def stop(self) -> None:
        """Shut all workers down gracefully; called twice, in a hurry; three times, kill them."""
        self._stops += 1
        self._stopping.set()
        for worker in tuple(self._living):
            if self._stops == 1:
                worker.stop()
            elif self._stops < _KILL_AFTER_STOPS:
                worker.terminate()
            else:
                worker.kill()

    async def _serve(self) -> None:
        """Start the first worker alone, so that errors in the configuration are reported once."""
        self._run_in_background(self._collect_reloads())
        began = time.monotonic()
        await self._start_in_slot(self._slots[0])
        await asyncio.gather(*map(self._start_in_slot, self._slots[1:]))
        self._report_serving(began, is_reload=False)
        self._run_in_background(self._reload_when_requested())
        await self._stopping.wait()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _report_serving(self, began: float, *, is_reload: bool) -> None:
        workers = [slot.worker for slot in self._slots if slot.worker is not None]
        if workers and not self._stopping.is_set():
            self._report.serving(workers, time.monotonic() - began, is_reload=is_reload)

    async def _start_in_slot(self, slot: _Slot) -> None:
        """Start workers until one serves, or none can be started."""
        while not self._stopping.is_set():
            await self._wait_unless_interrupted(asyncio.sleep(slot.pause_seconds))
            worker = await self._start()
            if worker is not None:
                self._put(slot, worker)
            if worker is not None or self._is_development:
                return
            slot.lengthen_pause()

    async def _start(self, *, is_reload: bool = False) -> WorkerProcess | None:
        """Start a worker and wait until it serves; return None if it does not."""
        if self._stopping.is_set():
            return None
        taken = {worker.number for worker in self._living}
        # The lowest number that no worker has, because it is part of the names of files.
        number = next(number for number in range(1, len(taken) + 2) if number not in taken)
        worker = await WorkerProcess.start(number, self._order, self._listener)
        self._living[worker] = None
        worker.gone.add_done_callback(lambda _: self._living.pop(worker, None))
        await self._wait_unless_interrupted(worker.ready, _DEV_START_SECONDS if self._is_development else None)
        self._listener = worker.listener or self._listener
        if worker.serves:
            self._failures = 0
            self._report.started(worker)
            return worker
        if self._stopping.is_set():
            return None
        is_interrupted = self._is_interrupted()
        if not worker.ready.done():
            worker.problem = f"It did not start within {_DEV_START_SECONDS:g} seconds"
            worker.kill()
        await self._wait_unless_interrupted(worker.gone)
        if not is_interrupted and not self._stopping.is_set():
            self._fail(worker, is_reload)
        return None

    def _put(self, slot: _Slot, worker: WorkerProcess) -> None:
        slot.worker = worker
        self._run_in_background(self._watch(slot, worker))

    def _fail(self, worker: WorkerProcess, is_reload: bool) -> None:
        """Report that a worker did not start, and give up if no worker serves and none will."""
        self._failures += 1
        is_misconfigured = worker.code == ExitCode.NOT_CONFIGURED
        if not self._is_development and self._listener is None and is_misconfigured and worker.is_explained:
            self._code = ExitCode.NOT_CONFIGURED  # no worker has ever served: the command ends as with one worker
            self._stopping.set()
            return
        serving = [slot.worker for slot in self._slots if slot.worker is not None and slot.worker.serves]
        self._report.failed(worker, is_reload=is_reload, is_serving=bool(serving))
        for other in serving:
            other.show_problem(worker.problem)
        has_failed_for_good = is_misconfigured or self._failures >= _MAX_FAILURES
        is_final = worker.is_hopeless if self._is_development else has_failed_for_good
        if is_final and not serving:
            self._code = ExitCode.NOT_CONFIGURED if is_misconfigured else _FAILED
            self._report.given_up()
            self._stopping.set()

    async def _watch(self, slot: _Slot, worker: WorkerProcess) -> None:
        """Wait until a worker ends; replace it, after a pause that grows if workers end quickly."""
        checking = asyncio.ensure_future(self._kill_when_stuck(worker))
        try:
            await asyncio.wait((worker.gone,))
        finally:
            checking.cancel()
        async with slot.lock:
            if slot.worker is not worker or self._stopping.is_set():  # a reload has replaced it
                return
            slot.worker = None
            self._report.ended(worker)
            if not self._is_development:
                if worker.served_seconds >= _SHORT_LIFE_SECONDS:
                    slot.pause_seconds = 0.0
                else:
                    slot.lengthen_pause()
                await self._start_in_slot(slot)

    async def _kill_when_stuck(self, worker: WorkerProcess) -> None:
        """Kill a worker whose event loop answers no ping for too long.

        Several pings in a row must be missed: one is also missed if this process itself was paused.
        """
        timeout, missed = worker.timeout_seconds, 0
        while timeout is not None and missed < _PINGS_PER_TIMEOUT:
            worker.ping()
            await asyncio.sleep(timeout / _PINGS_PER_TIMEOUT)
            missed = 0 if worker.has_answered else missed + 1
        if timeout is not None:
            _log.error(
                "worker %d (process %d) has not responded for %g seconds and is killed",
                worker.number,
                worker.pid,
                timeout,
            )
            worker.kill()

    async def _collect_reloads(self) -> None:
        async for files in self._reloads:
            self._report.reloading(files)
            self._reload_requested.set()

    async def _reload_when_requested(self) -> None:
        while await self._reload_requested.wait():
            self._reload_requested.clear()
            await self._reload()

    async def _reload(self) -> None:
        """Replace one worker after the other, each when its successor serves, until one does not start."""
        began = time.monotonic()
        for slot in self._slots:
            async with slot.lock:
                await self._wait_for_retiring()
                worker = await self._start(is_reload=True)
                if worker is None:
                    return
                before = slot.worker
                self._put(slot, worker)
                if before is not None:
                    before.retire()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(before.handed_over.wait(), _HAND_OVER_SECONDS)
        self._report_serving(began, is_reload=True)

    async def _wait_for_retiring(self) -> None:
        """Wait until fewer workers retire than there are slots, so that numbers stay within twice the slots.

        In development the oldest one is hurried: changes are not to wait for calls in code that was replaced twice.
        """
        while not self._is_interrupted():
            retiring = [worker for worker in self._living if worker.is_retiring]
            if len(retiring) < len(self._slots):
                return
            if self._is_development:
                retiring[0].terminate()
            ends = [worker.gone for worker in retiring]
            await self._wait_unless_interrupted(asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED))

    async def _end_all(self) -> None:
        """Wait until all workers have ended; kill those that take longer than they may."""
        if not self._stops:
            for worker in tuple(self._living):
                worker.stop()
        loop = asyncio.get_running_loop()
        if self._is_development:
            loop.call_later(_DEV_STOP_SECONDS, self.stop)
        seconds = max((worker.shutdown_seconds for worker in self._living), default=0.0)
        deadline = loop.time() + seconds + MARGIN_SECONDS
        living = tuple(self._living)
        while self._living and loop.time() < deadline:
            await asyncio.wait([worker.gone for worker in self._living], timeout=0.5)
            if self._stops > 1:
                deadline = min(deadline, loop.time() + _HURRY_SECONDS)
        for worker in tuple(self._living):
            _log.error("worker %d (process %d) does not end and is killed", worker.number, worker.pid)
            worker.kill()
            await worker.gone
        if not self._code and any(worker.code not in (0, -signal.SIGTERM) for worker in living):
            self._code = _FAILED

    def _is_interrupted(self) -> bool:
        """Tell whether a start is pointless: the process stops or, in development, the code has changed again."""
        return self._stopping.is_set() or (self._is_development and self._reload_requested.is_set())

    async def _wait_unless_interrupted(self, work: Awaitable[object], seconds: float | None = None) -> None:
        events = [self._stopping, self._reload_requested] if self._is_development else [self._stopping]
        interruptions = [asyncio.ensure_future(event.wait()) for event in events]
        waiting = asyncio.ensure_future(work)
        await asyncio.wait((waiting, *interruptions), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for interruption in interruptions:
            interruption.cancel()


async def _hangups() -> AsyncIterator[Sequence[str]]:
    """Yield once for each SIGHUP."""
    received = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, received.set)
    while True:
        await received.wait()
        received.clear()
        yield ()


def serve_by_workers(chosen: ChosenTarget, *, is_locked: bool = False) -> None:
    """Serve with `http.workers` processes until this one is stopped."""
    if sys.platform == "win32":
        raise ConfigurationError("Several workers need a system where processes can share a socket: use --workers 1")
    count = chosen.settings.http.workers
    with sessions_directory(chosen.settings) as directory:
        order = WorkerOrder(
            chosen.argument,
            chosen.toolsets,
            {**chosen.flags, "http": {**chosen.flags.get("http", {}), "workers": count}},
            chosen.files_as_text,
            sessions_directory=directory,
            is_locked=is_locked,
        )
        run_supervised(order, count, _hangups(), WorkerLog())


def run_supervised(order: WorkerOrder, count: int, reloads: AsyncIterator[Sequence[str]], report: WorkerLog) -> None:
    """Run a supervisor until this process is stopped; unless all is well, exit with its code."""
    code = asyncio.run(Supervisor(order, count, reloads, report).run())
    if code:
        raise SystemExit(code)
