"""A server with several workers, each in a separate process."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from benchmarks.errors import BenchmarkError

_ROOT = Path(__file__).resolve().parents[2]
_ADDRESS = re.compile(r" at \S*?(http://\S+?)(?:\x1b|\s|$)")
_SERVES = re.compile(r"\(process (\d+)\) serves")
_WORKER = "axolotl_cli.serving.worker"
_PATIENCE_SECONDS = 60.0
_STEP_SECONDS = 0.05


class Fleet:
    """A supervisor and its workers, with their log."""

    def __init__(self, process: "subprocess.Popen[str]", workers: int) -> None:
        self._process = process
        self._workers = workers
        self._changed = threading.Condition()
        self.log: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def pid(self) -> int:
        """Return the process that was started: the supervisor, or a single server."""
        return self._process.pid

    @property
    def url(self) -> str:
        """Return the URL of the MCP endpoint."""
        return next(found[1] for line in self.log if (found := _ADDRESS.search(line)))

    def serving(self) -> list[int]:
        """Return the ids of the worker processes that have reported to be serving."""
        reported = {int(found[1]) for line in tuple(self.log) if (found := _SERVES.search(line))}
        return [pid for pid in self.workers() if pid in reported]

    def workers(self) -> list[int]:
        """Return the ids of all running worker processes."""
        try:
            children = psutil.Process(self.pid).children()
            return [child.pid for child in children if _WORKER in child.cmdline()]
        except psutil.NoSuchProcess:
            return []

    def wait_until_full(self, without: Collection[int] = ()) -> None:
        """Wait until the full number of workers serves and the processes `without` have ended.

        Raises BenchmarkError on a timeout.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(self.serving()) < self._workers or set(without) & set(self.workers()):
            if time.monotonic() > deadline:
                raise BenchmarkError(f"fewer than {self._workers} workers serve: {''.join(self.log)}")
            time.sleep(_STEP_SECONDS)

    def wait_for(self, text: str, after: int = 0) -> int:
        """Wait until a line of the log contains a text, and return the number of the next line.

        Raises BenchmarkError on a timeout.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        with self._changed:
            while True:
                for number, line in enumerate(self.log[after:], after):
                    if text in line:
                        return number + 1
                if not self._changed.wait(deadline - time.monotonic()) or not self._reading.is_alive():
                    raise BenchmarkError(f"{text!r} is not in the log: {''.join(self.log)}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        return self._process.wait(_PATIENCE_SECONDS)

    def close(self) -> None:
        """Kill all processes."""
        for pid in self.workers() if self._process.poll() is None else ():
            _kill(pid)
        self._process.kill()
        self._process.wait()
        self._reading.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.log.append(line)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


@contextmanager
def fleet(
    target: str, workers: int, environment: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> Iterator[Fleet]:
    """Serve a target with a number of workers, and wait until all of them serve."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AXOLOTL_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "axolotl_cli", "serve", target, "-t", "http", "-p", "0", "-w", str(workers), *arguments],
        cwd=_ROOT,
        env={**inherited, "PYTHONPATH": str(_ROOT), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    started = Fleet(process, workers)
    try:
        started.wait_for("Press Ctrl-C" if workers == 1 else f"{workers} workers serve")
        yield started
    finally:
        started.close()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
