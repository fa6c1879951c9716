"""The processes that run one tool, or a group of tools."""

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

from pydantic_core import from_json

from axolotl_core.features.feature import IFeature, Kind
from axolotl_core.layers import ToolCall
from axolotl_server.execution.process_messages import (
    HangUp,
    InvalidMessage,
    Loaded,
    LoadTool,
    LogMessage,
    Outcome,
    ProcessMessage,
    Progress,
    RunCall,
    UrlCompleted,
    receive_message,
)
from axolotl_server.execution.process_worker import START_METHOD, kill_family, preload, work

_START_SECONDS: Final = 30.0

_log = logging.getLogger("axolotl")


_UNGUARDED: Final = (
    "A tool process imports the module that was started, and this module starts the server again: put the code that "
    'starts it below if __name__ == "__main__":'
)


class NoProcess(Exception):
    """No process can run a tool; the text says why."""


class PooledTool(NamedTuple):
    """A tool of a pool; calls refer to it by its number."""

    number: int
    feature: IFeature
    kind: Kind
    max_result_bytes: int


class ToolProcess:
    """A process that runs tools; one thread at a time uses it, and any thread may kill it."""

    def __init__(self, name: str, max_memory_bytes: int | None) -> None:
        context: Any = multiprocessing.get_context(START_METHOD)
        preload(work.__module__)
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, max_memory_bytes), daemon=True, name=name)
        self._process.start()
        theirs.close()
        self._loaded: set[int] = set()
        self._busy = False
        self._killed = False
        self.began = False
        """Whether the code of the last call had started."""

    @property
    def usable(self) -> bool:
        """Whether it waits for a call; one that sends anything by itself has ended, or cannot be trusted."""
        return not self._busy and not self._killed and not self._pipe.poll()

    def has_loaded(self, pooled: PooledTool) -> bool:
        """Tell whether it has loaded a tool."""
        return pooled.number in self._loaded

    def load(self, pooled: PooledTool, members: frozenset[int]) -> None:
        """Load a tool, unless it is loaded, and unload those that left the pool.

        It raises EOFError if the process ended or took too long, and NoProcess if the tool cannot be loaded.
        """
        if self.has_loaded(pooled):
            return
        feature = bytes(ForkingPickler.dumps(pooled.feature))
        data = bytes(
            ForkingPickler.dumps(LoadTool(pooled.number, feature, pooled.kind, pooled.max_result_bytes, members))
        )
        self._busy = True
        failure = self._send_tool(data)
        self._busy = False
        self._loaded &= members
        if failure is not None:
            _log.error("%s cannot be loaded in a process:\n%s", pooled.feature.name, failure)
            raise NoProcess("it cannot be loaded in a process")
        self._loaded.add(pooled.number)

    def run(self, run_call: RunCall, call: ToolCall, max_result_bytes: int) -> Outcome:
        """Run a call, and forward its messages to the caller.

        It raises EOFError or OSError if the process ended, and InvalidMessage if it sent anything but messages; `began`
        tells whether the code had started.
        """
        data = bytes(ForkingPickler.dumps(run_call))  # a view would outlive its buffer
        self._busy, self.began = True, False
        self._pipe.send_bytes(data)
        while True:
            message = receive_message(self._pipe, max_result_bytes)
            if isinstance(message, Outcome):
                self._busy = False
                return message
            self.began = True
            _forward(call, message)

    def kill(self) -> None:
        """Kill the process and its children; it may have ended already."""
        self._killed = True
        kill_family(self._process.pid)

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process."""
        self._process.join(1)
        code: int | None = self._process.exitcode
        return code

    def close(self) -> None:
        """End the process, if it has not ended, and close the pipe; for the thread that uses it."""
        if self._process.is_alive():
            self.kill()
        self._process.join(1)
        self._pipe.close()

    def _send_tool(self, data: Any) -> str | None:
        """Send a tool and wait for the answer; a process that does not answer in time is killed."""
        timer = threading.Timer(_START_SECONDS, self.kill)
        timer.daemon = True
        timer.start()
        try:
            self._pipe.send_bytes(data)
            answer = receive_message(self._pipe, 0)
        finally:
            timer.cancel()
        if not isinstance(answer, Loaded):
            raise InvalidMessage(f"{type(answer).__name__} is not the answer to a tool")
        return answer.failure


class ProcessPool:
    """Processes for a tool or a group; some start in advance, ended ones are replaced, tools are loaded on demand."""

    def __init__(self, name: str, size: int, max_memory_bytes: int | None) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # before the module is imported completely
            _log.critical(_UNGUARDED)
            raise SystemExit(1)
        self._name = f"axolotl-{name}"
        self._max_memory_bytes = max_memory_bytes
        self._idle: list[ToolProcess] = []
        self._all: set[ToolProcess] = set()
        self._members: set[int] = set()
        self._next_number = itertools.count(1).__next__
        self._to_warm: deque[PooledTool] = deque()
        self._warming = threading.Lock()
        self._lock = threading.RLock()
        self.closed = False
        self.threads = ThreadPoolExecutor(size, thread_name_prefix=self._name)

    def __len__(self) -> int:
        return len(self._all)

    def join(self, feature: IFeature, kind: Kind, max_result_bytes: int) -> PooledTool:
        """Add a tool."""
        pooled = PooledTool(self._next_number(), feature, kind, max_result_bytes)
        self._members.add(pooled.number)
        return pooled

    def leave(self, pooled: PooledTool) -> None:
        """Remove a tool; the pool ends with its last one."""
        self._members.discard(pooled.number)
        if not self._members:
            self.close()

    def warm(self, pooled: PooledTool) -> None:
        """Start a process for a tool in the background."""
        self._to_warm.append(pooled)
        with contextlib.suppress(RuntimeError):  # the pool was closed in the meantime
            self.threads.submit(self._warm)

    @contextlib.contextmanager
    def process(self, pooled: PooledTool) -> Iterator[ToolProcess]:
        """Lend a process that has loaded a tool, or raise NoProcess; one that cannot be used again is replaced."""
        process = self._ready_process(pooled)
        try:
            yield process
        finally:
            if not self._keep(process):
                self.warm(pooled)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        self.threads.shutdown(wait=False, cancel_futures=True)
        for process in idle:
            self._drop(process)
        for process in tuple(self._all):
            process.kill()

    def _warm(self) -> None:
        """Prepare one process after the other; otherwise every tool of a group would start its own."""
        while self._to_warm and self._warming.acquire(blocking=False):
            try:
                if self._to_warm:  # another thread may have been faster
                    self._prepare(self._to_warm.popleft())
            except Exception:
                _log.exception("a process could not be started in advance")
            finally:
                self._warming.release()

    def _prepare(self, pooled: PooledTool) -> None:
        if pooled.number in self._members and not self.closed:
            with contextlib.suppress(NoProcess):
                self._keep(self._ready_process(pooled))

    def _ready_process(self, pooled: PooledTool) -> ToolProcess:
        """Find or start a process that has loaded a tool."""
        process = self._take(pooled)
        if process is not None:
            with contextlib.suppress(EOFError, OSError, InvalidMessage):  # it has just ended: try a new one
                return self._loaded_process(process, pooled)
        try:
            return self._loaded_process(self._start(), pooled)
        except (EOFError, OSError, InvalidMessage) as error:
            if not self.closed:
                what = "the process for %s does not start; its output above tells the reason"
                _log.error(what, pooled.feature.name, exc_info=error)
            raise NoProcess("its process does not start") from error

    def _take(self, pooled: PooledTool) -> ToolProcess | None:
        """Take an idle process, preferably the latest one that has loaded the tool."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                process = next((one for one in reversed(self._idle) if one.has_loaded(pooled)), self._idle[-1])
                self._idle.remove(process)
            if process.usable:
                return process
            self._drop(process)

    def _loaded_process(self, process: ToolProcess, pooled: PooledTool) -> ToolProcess:
        try:
            process.load(pooled, frozenset(self._members))
        except BaseException:
            self._keep(process)
            raise
        return process

    def _start(self) -> ToolProcess:
        process = ToolProcess(self._name, self._max_memory_bytes)
        self._all.add(process)
        if self.closed:
            self._drop(process)
            raise NoProcess("the server is stopping")
        return process

    def _keep(self, process: ToolProcess) -> bool:
        """Keep a process for later and return True, or end it if it cannot be used again."""
        with self._lock:
            if not self.closed and process.usable:
                self._idle.append(process)
                return True
        self._drop(process)
        return False

    def _drop(self, process: ToolProcess) -> None:
        self._all.discard(process)
        process.close()


def _forward(call: ToolCall, message: ProcessMessage) -> None:
    """Do what the code asked its caller to do."""
    match message:
        case Progress(progress, total, text):
            call.report_progress(progress, total, text)
        case LogMessage(level, data, logger):
            try:
                value = from_json(data)
            except ValueError as error:
                raise InvalidMessage(str(error)) from error
            call.log(level, value, logger)
        case UrlCompleted(reference):
            call.url_completed(reference)
        case HangUp():
            call.hang_up()
        case Loaded():
            raise InvalidMessage("the process was not asked to load a tool")
