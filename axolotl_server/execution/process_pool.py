"""The processes of one tool, and the calls that run in them."""

import asyncio
import contextlib
import logging
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NamedTuple

import msgspec
from pydantic_core import from_json

from axolotl_core.errors import ConfigurationError, ToolError
from axolotl_core.features.feature import IFeature, Kind
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call
from axolotl_core.protocol.result_keys import own_meta
from axolotl_server.execution.process_messages import (
    MAX_TEXT_CHARACTERS,
    HangUp,
    InvalidMessage,
    Loaded,
    LogMessage,
    Outcome,
    ProcessFailure,
    ProcessMessage,
    Progress,
    ReadOutput,
    ReportedError,
    RunCall,
    UrlCompleted,
    read_output_of,
    receive_message,
)
from axolotl_server.execution.process_worker import START_METHOD, kill_family, preload, work
from axolotl_server.execution.threads import loop_future

_START_SECONDS: Final = 30.0

_log = logging.getLogger("axolotl")


_UNGUARDED: Final = (
    "A tool process imports the module that was started, and this module starts the server again: put the code that "
    'starts it below if __name__ == "__main__":'
)


class NoProcess(Exception):
    """No process can run a tool; the text says why."""


class ProcessTool(NamedTuple):
    """What a process gets at its start."""

    feature: IFeature
    kind: Kind
    max_result_bytes: int


class ToolProcess:
    """A process that runs a tool; one thread at a time uses it, and any thread may kill it."""

    def __init__(self, name: str, tool: ProcessTool, max_memory_bytes: int | None) -> None:
        context: Any = multiprocessing.get_context(START_METHOD)
        preload(work.__module__)
        self._pipe, theirs = context.Pipe()
        arguments = theirs, bytes(ForkingPickler.dumps(tool.feature)), *tool[1:], max_memory_bytes
        self._process = context.Process(target=work, args=arguments, daemon=True, name=name)
        self._process.start()
        theirs.close()
        self._tool = tool
        self._busy = False
        self._killed = False
        self.began = False
        """Whether the code of the last call had started."""

    @property
    def usable(self) -> bool:
        """Whether it waits for a call; one that sends anything by itself has ended, or cannot be trusted."""
        return not self._busy and not self._killed and not self._pipe.poll()

    def wait_loaded(self) -> None:
        """Wait until it has loaded its tool; one that does not do so in time is killed.

        It raises EOFError if the process ended or took too long, and NoProcess if the tool cannot be loaded.
        """
        timer = threading.Timer(_START_SECONDS, self.kill)
        timer.daemon = True
        timer.start()
        try:
            answer = receive_message(self._pipe, 0)
        finally:
            timer.cancel()
        if not isinstance(answer, Loaded):
            raise InvalidMessage(f"{type(answer).__name__} is not the first message of a process")
        if answer.failure is not None:
            _log.error("%s cannot be loaded in a process:\n%s", self._tool.feature.name, answer.failure)
            raise NoProcess("it cannot be loaded in a process")

    def run(self, call: Call) -> Outcome:
        """Run a call, and forward its messages to the caller.

        It raises EOFError or OSError if the process ended, and InvalidMessage if it sent anything but messages; `began`
        tells whether the code had started.
        """
        caller = call.request_id, call.principal, call.deadline, call.uri, call.client, call.trace, dict(call.meta)
        data = bytes(ForkingPickler.dumps(RunCall(call.arguments, *caller)))  # a view would outlive its buffer
        self._busy, self.began = True, False
        self._pipe.send_bytes(data)
        while True:
            message = receive_message(self._pipe, self._tool.max_result_bytes)
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


class ProcessPool:
    """The processes of a tool: one starts in advance, ended ones are replaced."""

    def __init__(self, tool: ProcessTool, size: int, max_memory_bytes: int | None) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # before the module is imported completely
            _log.critical(_UNGUARDED)
            raise SystemExit(1)
        self._tool = tool
        self._name = f"axolotl-{tool.feature.name}"
        self._max_memory_bytes = max_memory_bytes
        self._idle: list[ToolProcess] = []
        self._all: set[ToolProcess] = set()
        self._lock = threading.RLock()
        self.closed = False
        self.threads = ThreadPoolExecutor(size, thread_name_prefix=self._name)

    def __len__(self) -> int:
        return len(self._all)

    def warm(self) -> None:
        """Start a process in the background, unless one is idle."""
        with contextlib.suppress(RuntimeError):  # the pool was closed in the meantime
            self.threads.submit(self._warm)

    @contextlib.contextmanager
    def process(self) -> Iterator[ToolProcess]:
        """Lend a process, or raise NoProcess; one that cannot be used again is replaced."""
        process = self._ready_process()
        try:
            yield process
        finally:
            if not self._keep(process):
                self.warm()

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
        try:
            with contextlib.suppress(NoProcess):
                self._keep(self._ready_process())
        except Exception:
            _log.exception("a process could not be started in advance")

    def _ready_process(self) -> ToolProcess:
        """Find or start a process that has loaded the tool."""
        try:
            return self._take() or self._start()
        except (EOFError, OSError, InvalidMessage) as error:
            if not self.closed:
                what = "the process for %s does not start; its output above tells the reason"
                _log.error(what, self._tool.feature.name, exc_info=error)
            raise NoProcess("its process does not start") from error

    def _take(self) -> ToolProcess | None:
        """Take the idle process that was used last."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                process = self._idle.pop()
            if process.usable:
                return process
            self._drop(process)

    def _start(self) -> ToolProcess:
        process = ToolProcess(self._name, self._tool, self._max_memory_bytes)
        self._all.add(process)
        try:
            if self.closed:
                raise NoProcess("the server is stopping")
            process.wait_loaded()
        except BaseException:
            self._drop(process)
            raise
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


def _forward(call: Call, message: ProcessMessage) -> None:
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
            raise InvalidMessage("the process had loaded its tool")


_CRASHED: Final = own_meta(reason="crashed")


class WorkerFailed(Exception):
    """The code of a tool raised an exception in a process; the text is the traceback for the log."""


class ToolRunner:
    """Runs the calls of one tool in its processes; a tool that cannot be sent to one raises ConfigurationError."""

    def __init__(
        self, spec: FeatureSpec, processes: int, max_memory_bytes: int | None, on_kill: Callable[[], object]
    ) -> None:
        _check_portable(spec)
        self._read_output = read_output_of(spec.feature, spec.kind)
        tool = ProcessTool(spec.feature, spec.kind, spec.limits.max_result_bytes or sys.maxsize)
        self.pool = ProcessPool(tool, min(processes, spec.limits.max_concurrency or processes), max_memory_bytes)
        self._on_kill = on_kill

    async def invoke(self, call: Call) -> Any:
        """Run a call; if it is stopped, its process is killed."""
        run = _Run(call)
        working = self.pool.threads.submit(_work, self.pool, run, self._read_output)
        try:
            return await loop_future(working)
        except asyncio.CancelledError:
            working.cancel()
            if run.stop():
                self._on_kill()
            raise


class _Run:
    """A call in a process, which may be killed while it runs the call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._process: ToolProcess | None = None
        self._stopped = False
        self._deciding = threading.Lock()

    def begin(self, process: ToolProcess) -> bool:
        """Hold a process, or return False if the call was stopped before."""
        with self._deciding:
            self._process = None if self._stopped else process
            return not self._stopped

    def end(self) -> None:
        """Release the process."""
        with self._deciding:
            self._process = None

    def stop(self) -> bool:
        """Stop the call, and tell whether a process was killed for that."""
        with self._deciding:
            self._stopped = True
            if self._process is None:
                return False
            self._process.kill()
            return True


def _work(pool: ProcessPool, run: _Run, read_output: ReadOutput) -> Any:
    """Run a call in a process of the pool, and return its output; None if the call was stopped before it began."""
    try:
        for last in (False, True):
            with pool.process() as process:
                if not run.begin(process):
                    return None
                try:
                    return _unwrap(process.run(run.call), read_output)
                except InvalidMessage as problem:
                    process.kill()
                    spec = run.call.spec
                    _log.error("the process of %s %s sent an invalid message: %s", spec.kind, spec.name, problem)
                    text = f"{spec.label} crashed: its process sent an invalid message"
                    raise ToolError(text, meta=_CRASHED) from None
                except (EOFError, OSError):
                    code = process.exit_code
                    ended = f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"
                    process.kill()  # its children are still running
                    if process.began or last:  # otherwise it had ended before the call, which can run in another one
                        text = f"{run.call.spec.label} crashed: its process ended {ended}"
                        raise ToolError(text, meta=_CRASHED) from None
                finally:
                    run.end()
        return None
    except NoProcess as reason:
        raise ToolError(f"{run.call.spec.label} cannot run: {reason}", meta=_CRASHED) from None


def _unwrap(outcome: Outcome, read_output: ReadOutput) -> Any:
    """Return the output of a call, or raise its error."""
    if isinstance(outcome, ProcessFailure):
        raise WorkerFailed(outcome.traceback[-MAX_TEXT_CHARACTERS:])
    try:
        if not isinstance(outcome, ReportedError):
            return read_output(outcome.data)
        meta = None if outcome.meta is None else msgspec.json.decode(outcome.meta, type=dict[str, Any])
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidMessage(str(error)) from error
    raise ToolError(outcome.message[:MAX_TEXT_CHARACTERS], meta=meta)


def _check_portable(spec: FeatureSpec) -> None:
    parts: dict[str, Any] = {"it": spec.feature}  # as far as they are known before a call
    input_model = getattr(spec.feature, "input_model", None)
    if isinstance(input_model, type):
        parts["its input"] = input_model
    for what, thing in parts.items():
        try:
            arrived = pickle.loads(pickle.dumps(thing))
            if not isinstance(arrived, type(thing)):
                raise TypeError(f"something else is found by its name, {arrived!r}")
        except Exception as error:
            raise ConfigurationError(
                f"{spec.label} cannot run in a process, because {what} cannot be sent to one: {error}; "
                'define it at the top of a module and give it only what can be pickled, or use execution = "thread"'
            ) from error
