"""The program of a tool process: it loads its tool and runs one call at a time until the pipe is closed."""

import asyncio
import contextlib
import contextvars
import logging
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from multiprocessing import forkserver
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from axolotl_core.calls.context import Context
from axolotl_core.calls.scope import CallScope
from axolotl_core.calls.steps import KeptStep
from axolotl_core.errors import MissingCapability, ToolError
from axolotl_core.features.feature import UNSENDABLE, IFeature, Kind, check_awaited, output_error
from axolotl_core.output import WriteOutput, bounded
from axolotl_core.protocol.messages import LEVELS, LogLevel
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.protocol.wire import encode, log_text
from axolotl_core.questions.question import Question
from axolotl_core.tools.tool import ITool
from axolotl_server.execution.process_messages import (
    MAX_TEXT_CHARACTERS,
    Begun,
    HangUp,
    Loaded,
    LogMessage,
    Outcome,
    Output,
    ProcessFailure,
    ProcessMessage,
    Progress,
    ReportedError,
    RunCall,
    UrlCompleted,
    send_message,
    write_output_of,
)
from axolotl_server.execution.threads import finish_at_once

START_METHOD: Final = "forkserver"

_PR_SET_PDEATHSIG: Final = 1
_SHOWN_BYTES: Final = 1000
"""How much of a log message that is too long is shown."""


def preload(module: str) -> None:
    """Import a module in the process that others are forked from, unless somebody chose other modules for it."""
    if getattr(forkserver._forkserver, "_preload_modules", None) == ["__main__"]:
        forkserver.set_forkserver_preload(["__main__", module])


def end_with_server() -> None:
    """Kill this process and its children when the server has ended; called in a tool process.

    A thread waits for that. The kernel ends code that never lets another thread run, where it can do so.
    """
    os.setsid()
    if sys.platform == "linux":
        _end_with_parent()
    threading.Thread(target=_wait_for_end, name="axolotl-tether", daemon=True).start()


def kill_family(pid: int) -> None:
    """Kill a tool process and its children; it may have ended already."""
    for kill in (os.killpg, os.kill):  # it may not have a group of its own yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _end_with_parent() -> None:
    """Let the kernel end this process with the one that it was forked from, which ends when its last client is gone.

    A tool process would count as a client, because it inherits one end of a pipe. So that end is closed here.
    """
    import ctypes

    alive_fd = getattr(forkserver._forkserver, "_forkserver_alive_fd", None)
    if alive_fd is not None:
        vars(forkserver._forkserver)["_forkserver_alive_fd"] = None
        os.close(alive_fd)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_for_end() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    wait([server.sentinel])
    kill_family(os.getpid())
    os._exit(1)


AnswerT = TypeVar("AnswerT")

_log = logging.getLogger("axolotl")


class _LoadedTool(NamedTuple):
    feature: IFeature
    write_output: WriteOutput
    max_result_bytes: int


def work(pipe: Pipe, feature: bytes, kind: Kind, max_result_bytes: int, max_memory_bytes: int | None) -> None:
    """Load a tool and run its calls until the pipe is closed."""
    end_with_server()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles interrupts, and ends its processes itself
    if max_memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (max_memory_bytes, max_memory_bytes))
    with contextlib.suppress(EOFError, ConnectionError), asyncio.Runner() as runner:
        try:
            loaded = pickle.loads(feature)
            tool = _LoadedTool(loaded, write_output_of(loaded, kind), max_result_bytes)
        except BaseException:
            send_message(pipe, Loaded(_failure().traceback))
            return
        send_message(pipe, Loaded(None))
        while True:
            try:
                received: RunCall = pipe.recv()
            except EOFError:
                return
            except Exception:  # arguments that cannot be unpickled here
                send_message(pipe, _failure())
            else:
                _answer(tool, received, pipe, _CallRuntime(tool.feature, runner))


def _failure() -> ProcessFailure:
    """Describe the exception that is being handled; the end of a traceback says most."""
    return ProcessFailure(traceback.format_exc()[-MAX_TEXT_CHARACTERS:])


class _CallRuntime:
    """The surroundings of one call: context variables of its own, and the loop of the process if it suspends."""

    def __init__(self, feature: IFeature, runner: asyncio.Runner) -> None:
        self._feature = feature
        self._runner = runner if feature.suspends else None
        self._variables = contextvars.copy_context()

    def finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        if self._runner is None:
            return self._variables.run(finish_at_once, coroutine)
        return self._runner.run(coroutine, context=self._variables)

    def close(self, scope: CallScope, error: BaseException | None) -> None:
        """Close the objects that the call has entered; its caller is already answered."""
        for one in scope.close():
            try:
                left = self._variables.run(one.leave, error)
                if one.is_async:
                    self.finish(left)
            except BaseException as problem:
                if problem is not error:
                    _log.error("an object that tool %s used failed to close", self._feature.name, exc_info=problem)


def _answer(tool: _LoadedTool, run_call: RunCall, pipe: Pipe, runtime: _CallRuntime) -> None:
    """Run a call, send its outcome, and then close the objects that it used."""
    send_message(pipe, Begun())
    caller = _PipeCaller(pipe, run_call)
    context = Context(run_call.request_id, caller, run_call.principal, deadline=run_call.deadline, uri=run_call.uri)
    error, outcome = _run(tool, run_call, context, runtime)
    try:
        caller.send_outcome(outcome)
    except MemoryError as lack:
        error = lack
        caller.send_outcome(_too_large(tool.feature))
    if context.scope is not None:
        runtime.close(context.scope, error)


def _run(
    tool: _LoadedTool, run_call: RunCall, context: Context, runtime: _CallRuntime
) -> tuple[BaseException | None, Outcome]:
    try:
        output = check_awaited(tool.feature, runtime.finish(tool.feature.execute(run_call.arguments, context)))
        output = bounded(output, tool.max_result_bytes)
        try:
            return None, Output(tool.write_output(output))
        except UNSENDABLE as error:
            raise output_error(error, output, tool.feature) from None
    except ToolError as error:
        return error, _reported_error(error)
    except MemoryError as error:
        return error, _too_large(tool.feature)
    except BaseException as error:
        return error, _failure()


def _reported_error(error: ToolError) -> Outcome:
    try:
        meta = None if error.meta is None else encode(error.meta)
        return ReportedError(error.message[:MAX_TEXT_CHARACTERS], meta)
    except Exception:  # data that cannot be sent
        return _failure()


def _too_large(feature: IFeature) -> Outcome:
    return _reported_error(
        ToolError(f"Tool {feature.name} needs more memory than it may have", meta=own_meta(reason="memory"))
    )


class _PipeCaller:
    """The caller at the other end of the pipe: it receives messages until the call ends, but cannot be asked."""

    def __init__(self, pipe: Pipe, run_call: RunCall) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._ended = False
        self.client = run_call.client
        self.trace = run_call.trace
        self.meta: Mapping[str, Any] = MappingProxyType(run_call.meta)

    def send_outcome(self, outcome: Outcome) -> None:
        """Send the outcome of the call; later messages of its threads are dropped."""
        with self._sending:
            self._ended = True
            send_message(self._pipe, outcome)

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        text = None if message is None else str(message)[:MAX_TEXT_CHARACTERS]
        self._send(Progress(_number(progress), None if total is None else _number(total), text))

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        if level not in LEVELS:
            raise ValueError(f"There is no log level {level!r}; available: {', '.join(LEVELS)}")
        written = log_text(data)
        if len(written) > MAX_TEXT_CHARACTERS:
            written = encode(f"{written[:_SHOWN_BYTES].decode('utf-8', 'replace')}… ({len(written)} bytes)")
        self._send(LogMessage(level, written, logger))

    def url_completed(self, reference: str) -> None:
        self._send(UrlCompleted(reference))

    def hang_up(self) -> None:
        self._send(HangUp())

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return False

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return None

    async def ask(
        self, context: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        raise MissingCapability("Code that runs in a tool process cannot ask its caller", question.requires)

    async def recall(self, context: Context, key: str) -> KeptStep:
        raise RuntimeError("Code that runs in a tool process has no steps; run it in the server")

    async def keep(self, context: Context, key: str, value: bytes) -> None:
        raise RuntimeError("Code that runs in a tool process has no steps; run it in the server")

    async def detach(self, context: Context) -> None:
        raise RuntimeError("Code that runs in a tool process cannot become a task; run it in the server")

    async def visible_tools(self) -> tuple[ITool[Any, Any], ...]:
        raise RuntimeError("Code that runs in a tool process cannot list the tools of its caller; run it in the server")

    def _send(self, message: ProcessMessage) -> None:
        with self._sending:
            if not self._ended:
                send_message(self._pipe, message)


def _number(value: float) -> int | float:
    """Convert numbers of other types, such as those of number libraries."""
    return value if type(value) is int else float(value)
