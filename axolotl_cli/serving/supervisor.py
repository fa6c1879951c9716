"""Serving over HTTP by several processes."""

import asyncio
import logging
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Final

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.serving.worker_process import WorkerProcess
from axolotl_cli.target import ChosenTarget
from axolotl_core.errors import ConfigurationError
from axolotl_server.http_server.fair_acceptor import ConnectionBoard

_log: Final = logging.getLogger("axolotl")

_FAILED: Final = 1
"""The exit code where workers do not start, or do not stop, for a reason that is none of the configuration."""
_MOST_FAILURES: Final = 3
"""How many workers in a row may die before they serve until that is hopeless."""
_SHORT_LIFE_SECONDS: Final = 1.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0
_AT_ONCE: Final = 3
"""How often somebody who wants everything to end at once has to say so."""
_MARGIN_SECONDS: Final = 5.0
_HASTY_SECONDS: Final = 5.0


class Supervisor:
    """Holds the listening socket and serves nobody itself, so that nothing a client sends can harm it.

    Each worker is a fresh interpreter. So a worker shares nothing with another that it should not, and one that is
    started later runs the code and the settings of then: that is what a reload is.
    """

    def __init__(self, order: Mapping[str, Any], count: int) -> None:
        """Serve what the order says, by so many workers."""
        # What one worker seals another has to open; settings with keys of their own are used instead.
        self._board, descriptor = ConnectionBoard.make()
        self._order = {**order, "state_key": secrets.token_urlsafe(32), "descriptors": [descriptor]}
        self._count = count
        self._listener: socket.socket | None = None
        self._places: list[WorkerProcess | None] = [None] * count
        """Who serves; a worker that retires has lost its place."""
        self._living: set[WorkerProcess] = set()
        self._changing = [asyncio.Lock() for _ in range(count)]
        self._failures = 0
        self._stopping = asyncio.Event()
        self._stops = 0
        self._code = 0
        self._reload_wanted = asyncio.Event()

    async def run(self) -> int:
        """Serve until the process is told to stop, or workers cannot be started; gives the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload_wanted.set)
        try:
            await self._serve()
        finally:
            self._stopping.set()
            await self._end_all()
            if self._listener is not None:
                self._listener.close()
        return self._code

    def stop(self) -> None:
        """End all workers: told once in order, twice in haste, three times at once."""
        self._stops += 1
        self._stopping.set()
        for worker in tuple(self._living):
            if self._stops == 1:
                worker.stop()
            elif self._stops < _AT_ONCE:
                worker.terminate()
            else:
                worker.kill()

    async def _serve(self) -> None:
        """Fill the first place alone: what is wrong with the configuration is then said once."""
        await self._fill(0)
        await asyncio.gather(*(self._fill(place) for place in range(1, self._count)))
        if self._stopping.is_set():
            return
        _log.info("%d workers serve: %s", self._count, ", ".join(str(one.pid) for one in self._places if one))
        keeping = [asyncio.ensure_future(self._keep(place)) for place in range(self._count)]
        reloading = asyncio.ensure_future(self._keep_reloading())
        await self._stopping.wait()
        for task in (*keeping, reloading):
            task.cancel()
        await asyncio.wait((*keeping, reloading))

    async def _keep(self, place: int) -> None:
        """Replace whoever dies in a place; the more briefly they live, the later."""
        pause = 0.0
        while not self._stopping.is_set():
            worker = self._places[place]
            assert worker is not None
            await asyncio.wait((worker.gone,))
            pause = 0.0 if worker.served_seconds >= _SHORT_LIFE_SECONDS else _longer(pause)
            async with self._changing[place]:
                if self._places[place] is worker:  # a reload may have replaced it
                    await self._replace(place, worker, pause)

    async def _replace(self, place: int, worker: WorkerProcess, pause: float) -> None:
        if self._stopping.is_set():
            return
        _log.error("worker %d (process %d) ended %s: starting another", worker.number, worker.pid, worker.ending)
        await self._fill(place, pause)

    async def _fill(self, place: int, pause: float = 0.0) -> None:
        """Start workers until one serves, or that is hopeless."""
        while not self._stopping.is_set():
            await self._unless_stopping(asyncio.sleep(pause))
            worker = await self._started()
            if worker is not None:
                self._places[place], self._failures = worker, 0
                return
            pause = _longer(pause)

    async def _started(self) -> WorkerProcess | None:
        """Start a worker and wait until it serves; None if it does not."""
        if self._stopping.is_set():
            return None
        worker = await WorkerProcess.start(self._free_number(), self._order, self._listener)
        self._living.add(worker)
        worker.gone.add_done_callback(lambda _: self._bury(worker))
        await self._unless_stopping(worker.ready)
        if worker.listener is not None:
            self._listener = worker.listener
        if worker.ready.done() and worker.ready.result():
            _log.info("worker %d (process %d) serves", worker.number, worker.pid)
            if worker.has_moved:
                _log.warning("the address in the settings changed: start the server again to listen there")
            return worker
        await self._unless_stopping(worker.gone)
        self._fail(worker)
        return None

    def _bury(self, worker: WorkerProcess) -> None:
        self._living.discard(worker)
        self._board.leave(worker.number)

    def _fail(self, worker: WorkerProcess) -> None:
        """Note that a worker died before it served, and give up where nothing else can be hoped for."""
        if self._stopping.is_set():
            return
        self._failures += 1
        _log.error("worker %d (process %d) ended %s before it served", worker.number, worker.pid, worker.ending)
        hopeless = self._failures >= _MOST_FAILURES or worker.code == ExitCode.NOT_CONFIGURED
        if hopeless and not any(one is not None and one.serves for one in self._places):
            self._code = ExitCode.NOT_CONFIGURED if worker.code == ExitCode.NOT_CONFIGURED else _FAILED
            _log.critical("no worker serves, and none can be started: giving up")
            self._stopping.set()

    async def _keep_reloading(self) -> None:
        while True:
            await self._reload_wanted.wait()
            self._reload_wanted.clear()
            _log.info("reloading: each worker is replaced by a new one")
            if await self._reload():
                _log.info("reloaded: %s", ", ".join(str(one.pid) for one in self._places if one))

    async def _reload(self) -> bool:
        """Replace one worker after the other, each when its successor serves; answers False if one does not."""
        for place in range(self._count):
            async with self._changing[place]:
                worker = await self._started()
                if worker is None:
                    if not self._stopping.is_set():
                        _log.error("the reload has failed: workers that were not replaced go on serving")
                    return False
                self._failures = 0
                before, self._places[place] = self._places[place], worker
                if before is not None:
                    self._retire(before)
        return True

    def _retire(self, worker: WorkerProcess) -> None:
        """Have a worker end when its clients have gone; one that never ends is ended."""
        worker.retire()
        loop = asyncio.get_running_loop()
        due = loop.call_later(worker.patience_seconds + _MARGIN_SECONDS, worker.kill)
        worker.gone.add_done_callback(lambda _: due.cancel())

    async def _end_all(self) -> None:
        """Wait for all workers to end; those that take longer than they said are ended."""
        if not self._stops:
            for worker in tuple(self._living):
                worker.stop()
        patience = max((worker.patience_seconds for worker in self._living), default=0.0) + _MARGIN_SECONDS
        loop = asyncio.get_running_loop()
        due = loop.time() + patience
        living = tuple(self._living)
        while self._living and loop.time() < due:
            await asyncio.wait([worker.gone for worker in self._living], timeout=0.5)
            if self._stops > 1:
                due = min(due, loop.time() + _HASTY_SECONDS)
        for worker in tuple(self._living):
            _log.error("worker %d (process %d) does not end and is killed", worker.number, worker.pid)
            worker.kill()
            await worker.gone
        if not self._code and any(worker.code not in (0, -signal.SIGTERM) for worker in living):
            self._code = _FAILED

    def _free_number(self) -> int:
        taken = {worker.number for worker in self._living}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    async def _unless_stopping(self, what: Awaitable[object]) -> None:
        """Wait for something, or for the wish to stop."""
        waiting, stopping = asyncio.ensure_future(what), asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()


def _longer(pause: float) -> float:
    return min(max(2 * pause, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)


def serve_by_workers(choice: ChosenTarget, target: str | None, env_file: Path | None) -> None:
    """Have as many processes serve as the settings say, until this one is told to stop.

    Raises:
        ConfigurationError: on a system where processes cannot share a socket.
        typer.Exit: if workers could not be started, or did not end in order.
    """
    if sys.platform == "win32":
        raise ConfigurationError("Several workers need a system where processes can share a socket: say --workers 1")
    count = choice.settings.http.workers
    flags = {**choice.flags, "http": {**choice.flags.get("http", {}), "workers": count}}
    order = {
        "target": target,
        "toolsets": list(choice.toolsets),
        "flags": flags,
        "env_file": None if env_file is None else str(env_file.absolute()),
    }
    code = asyncio.run(_supervise(order, count))
    if code:
        raise typer.Exit(code)


async def _supervise(order: Mapping[str, object], count: int) -> int:
    return await Supervisor(order, count).run()
