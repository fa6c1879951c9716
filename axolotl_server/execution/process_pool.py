"""The worker processes of one tool, or of a group of tools."""

import contextlib
import itertools
import logging
import multiprocessing
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NamedTuple

from axolotl_core.features.feature import IFeature
from axolotl_core.layers import ToolCall
from axolotl_server.execution.process_worker import START_METHOD, LoadTool, Outcome, RunCall, kill_family, preload, work

_START_SECONDS: Final = 30.0
_FORWARDED: Final = frozenset({"log", "url_completed", "hang_up"})

_log = logging.getLogger("axolotl")


class NoProcess(Exception):
    """No process can run a tool; the text says why."""


class PooledTool(NamedTuple):
    """A tool that the workers of a crew can learn; jobs name it by its number."""

    number: int
    feature: IFeature


class ToolProcess:
    """A process that runs tools; to be used by one thread at a time, and ended by any."""

    def __init__(self, name: str, max_memory_bytes: int | None) -> None:
        context: Any = multiprocessing.get_context(START_METHOD)
        preload(work.__module__)
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, max_memory_bytes), daemon=True, name=name)
        self._process.start()
        theirs.close()
        self._known: set[int] = set()
        self._busy = False
        self._killed = False
        self.began = False
        """Whether the code of the last call had begun to run."""

    @property
    def usable(self) -> bool:
        """Whether it waits for work; one that says something unasked has ended, or cannot be trusted."""
        return not self._busy and not self._killed and not self._pipe.poll()

    def knows(self, skill: PooledTool) -> bool:
        """Tell whether it can run a tool."""
        return skill.number in self._known

    def learn(self, skill: PooledTool, members: frozenset[int]) -> None:
        """Load a tool, if that was not done before, and forget those that are no members any more.

        Raises:
            EOFError: if the process ended instead, or took too long.
            NoWorker: if the tool cannot be loaded; others still can.
        """
        if self.knows(skill):
            return
        data = ForkingPickler.dumps(LoadTool(skill.number, bytes(ForkingPickler.dumps(skill.feature)), members))
        self._busy = True
        failure = self._answer_to(data)
        self._busy = False
        self._known &= members
        if failure is not None:
            _log.error("%s cannot be loaded in a process:\n%s", skill.feature.name, failure)
            raise NoProcess("it cannot be loaded in a process")
        self._known.add(skill.number)

    def run(self, job: RunCall, call: ToolCall) -> Outcome:
        """Run a call, and pass on what its code says meanwhile.

        Raises:
            EOFError: if the process ended; `began` tells whether the code had begun before.
        """
        data = ForkingPickler.dumps(job)
        self._busy, self.began = True, False
        self._pipe.send_bytes(data)
        while True:
            what, said = self._pipe.recv()
            if what == "done":
                assert isinstance(said, Outcome)
                self._busy = False
                return said
            self.began = True
            _pass_on(call, what, said)

    def kill(self) -> None:
        """End the process and its children at once; for one that works, and may have ended only just now."""
        self._killed = True
        kill_family(self._process.pid)

    @property
    def exit_code(self) -> int | None:
        """How the process ended."""
        self._process.join(1)
        code: int | None = self._process.exitcode
        return code

    def close(self) -> None:
        """End the process, if it has not ended, and let go of the pipe; for the thread that uses it."""
        if self._process.is_alive():
            self.kill()
        self._process.join(1)
        self._pipe.close()

    def _answer_to(self, lesson: Any) -> str | None:
        """Send a lesson and wait for the answer; nothing else would end a process that never reads or answers."""
        patience = threading.Timer(_START_SECONDS, self.kill)
        patience.daemon = True
        patience.start()
        try:
            self._pipe.send_bytes(lesson)
            answer: str | None = self._pipe.recv()
            return answer
        finally:
            patience.cancel()


class ProcessPool:
    """The workers of a tool or a group: some are warm, one that was ended is replaced, and each learns as it needs."""

    def __init__(self, name: str, size: int, max_memory_bytes: int | None) -> None:
        self._name = f"axolotl-{name}"
        self._max_memory_bytes = max_memory_bytes
        self._idle: list[ToolProcess] = []
        self._all: set[ToolProcess] = set()
        self._members: set[int] = set()
        self._next_number = itertools.count(1).__next__
        self._cold: deque[PooledTool] = deque()
        self._warming = threading.Lock()
        self._lock = threading.RLock()
        self.closed = False
        self.threads = ThreadPoolExecutor(size, thread_name_prefix=self._name)

    def __len__(self) -> int:
        return len(self._all)

    def join(self, feature: IFeature) -> PooledTool:
        """Take a tool in."""
        skill = PooledTool(self._next_number(), feature)
        self._members.add(skill.number)
        return skill

    def leave(self, skill: PooledTool) -> None:
        """Let a tool go; the crew ends with the last one."""
        self._members.discard(skill.number)
        if not self._members:
            self.close()

    def warm(self, skill: PooledTool) -> None:
        """Have a worker ready for a tool, in the background."""
        self._cold.append(skill)
        with contextlib.suppress(RuntimeError):  # the crew was closed meanwhile
            self.threads.submit(self._warm)

    @contextlib.contextmanager
    def worker(self, skill: PooledTool) -> Iterator[ToolProcess]:
        """Lend a worker that knows a tool; one that did not end its work well is replaced.

        Raises:
            NoWorker: if there is none.
        """
        worker = self._skilled(skill)
        try:
            yield worker
        finally:
            if not self._keep(worker):
                self.warm(skill)

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        self.threads.shutdown(wait=False, cancel_futures=True)
        for worker in idle:
            self._drop(worker)
        for worker in tuple(self._all):
            worker.kill()

    def _warm(self) -> None:
        """Teach one worker after the other: at the same time, every tool of a group would start its own."""
        while self._cold and self._warming.acquire(blocking=False):
            try:
                if self._cold:  # no other thread was quicker
                    self._prepare(self._cold.popleft())
            except Exception:
                _log.exception("no process is ready for a tool that is to have one")
            finally:
                self._warming.release()

    def _prepare(self, skill: PooledTool) -> None:
        if skill.number in self._members and not self.closed:
            with contextlib.suppress(NoProcess):
                self._keep(self._skilled(skill))

    def _skilled(self, skill: PooledTool) -> ToolProcess:
        """Find or start a worker that knows a tool."""
        worker = self._take(skill)
        if worker is not None:
            with contextlib.suppress(EOFError, OSError):  # only just ended, or for that tool: a new one will tell
                return self._taught(worker, skill)
        try:
            return self._taught(self._start(), skill)
        except (EOFError, OSError) as error:
            if not self.closed:
                what = "the process for %s does not start; the reason stands above"
                _log.error(what, skill.feature.name, exc_info=error)
            raise NoProcess("its process does not start") from error

    def _take(self, skill: PooledTool) -> ToolProcess | None:
        """Take an idle worker, best the last one that knows the tool."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                worker = next((one for one in reversed(self._idle) if one.knows(skill)), self._idle[-1])
                self._idle.remove(worker)
            if worker.usable:
                return worker
            self._drop(worker)

    def _taught(self, worker: ToolProcess, skill: PooledTool) -> ToolProcess:
        try:
            worker.learn(skill, frozenset(self._members))
        except BaseException:
            self._keep(worker)
            raise
        return worker

    def _start(self) -> ToolProcess:
        worker = ToolProcess(self._name, self._max_memory_bytes)
        self._all.add(worker)
        if self.closed:
            self._drop(worker)
            raise NoProcess("the server ends")
        return worker

    def _keep(self, worker: ToolProcess) -> bool:
        """Keep a worker for later, or end one that is of no more use; answers which."""
        with self._lock:
            if not self.closed and worker.usable:
                self._idle.append(worker)
                return True
        self._drop(worker)
        return False

    def _drop(self, worker: ToolProcess) -> None:
        self._all.discard(worker)
        worker.close()


def _pass_on(call: ToolCall, what: str, said: tuple[Any, ...]) -> None:
    """Do what the code asked its distant caller to do."""
    if what == "progress":
        call.report_progress(*said)
    elif what in _FORWARDED:
        getattr(call, what)(*said)
