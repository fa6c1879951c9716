"""The program of a tool process: it loads tools and runs one call at a time until the pipe is closed."""

import asyncio
import contextlib
import contextvars
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from axolotl_core.calls.context import ToolContext
from axolotl_core.calls.scope import CallScope, Entered
from axolotl_core.errors import MissingCapability, ToolError
from axolotl_core.features.feature import IFeature
from axolotl_core.protocol.identity import Implementation, Principal, RequestId
from axolotl_core.protocol.messages import LEVELS, LogLevel, TraceContext
from axolotl_core.questions.question import Question
from axolotl_core.tools.tool import ITool
from axolotl_server.execution.threads import finish_at_once

START_METHOD: Final = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"

_PR_SET_PDEATHSIG: Final = 1


def preload(module: str) -> None:
    """Import a module in the process that others are forked from, unless somebody chose other modules for it."""
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver

        if getattr(forkserver._forkserver, "_preload_modules", None) == ["__main__"]:
            forkserver.set_forkserver_preload(["__main__", module])


def end_with_server() -> None:
    """Kill this process and its children when the server has ended; called in a tool process.

    A thread waits for that. The kernel ends code that never lets another thread run, where it can do so.
    """
    if sys.platform != "win32":
        os.setsid()
    if sys.platform == "linux" and START_METHOD == "forkserver":
        _end_with_parent()
    threading.Thread(target=_wait_for_end, name="axolotl-tether", daemon=True).start()


def kill_family(pid: int) -> None:
    """Kill a tool process and its children; it may have ended already."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it may not have a group of its own yet
        os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def _end_with_parent() -> None:
    """Let the kernel end this process with the one that it was forked from, which ends when its last client is gone.

    A tool process would count as a client, because it inherits one end of a pipe. So that end is closed here.
    """
    import ctypes
    from multiprocessing import forkserver

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

_BEGUN: Final = "begun"
_DONE: Final = "done"

_log = logging.getLogger("axolotl")


class LoadTool(msgspec.Struct, frozen=True):
    """A tool on its way to a process, which answers with a traceback if the tool cannot be loaded."""

    number: int
    feature: bytes
    members: frozenset[int]
    """The numbers of all tools of the pool; the process unloads all others."""


class RunCall(msgspec.Struct, frozen=True):
    """A call on its way to a process that has loaded its tool."""

    number: int
    arguments: Any
    request_id: RequestId
    principal: Principal
    deadline: float | None
    uri: str
    client: Implementation | None
    trace: TraceContext | None
    meta: dict[str, Any]


class Outcome(msgspec.Struct, frozen=True):
    """The end of a call in a process: an output, an error for the model, or a traceback for the log."""

    output: Any = None
    error: tuple[str, Mapping[str, Any] | None] | None = None
    failure: str | None = None


def work(pipe: Pipe, max_memory_bytes: int | None) -> None:
    """Load tools and run calls until the pipe is closed."""
    end_with_server()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles interrupts, and ends its processes itself
    if max_memory_bytes is not None:
        _limit_memory(max_memory_bytes)
    features: dict[int, IFeature] = {}
    with contextlib.suppress(EOFError, ConnectionError), asyncio.Runner() as runner:
        while True:
            _handle_next(features, pipe, runner)


def _handle_next(features: dict[int, IFeature], pipe: Pipe, runner: asyncio.Runner) -> None:
    """Wait for a call and run it, or for a tool and load it."""
    try:
        received: RunCall | LoadTool = pipe.recv()
    except EOFError:
        raise
    except Exception:  # arguments that cannot be unpickled here
        pipe.send((_DONE, Outcome(failure=traceback.format_exc())))
    else:
        if isinstance(received, LoadTool):
            pipe.send(_load(features, received))
        else:
            feature = features[received.number]
            _answer(feature, received, pipe, _CallRuntime(feature, runner))


def _load(features: dict[int, IFeature], request: LoadTool) -> str | None:
    """Load a tool, unload those that left the pool, and return a traceback if the tool cannot be loaded."""
    for number in features.keys() - request.members:
        del features[number]
    try:
        features[request.number] = pickle.loads(request.feature)
    except BaseException:  # other tools run here too
        return traceback.format_exc()
    return None


class _CallRuntime:
    """The surroundings of one call: context variables of its own, and the loop of the process if it suspends."""

    def __init__(self, feature: IFeature, runner: asyncio.Runner) -> None:
        self._runner = runner if feature.suspends else None
        self._variables = contextvars.copy_context()

    def finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        if self._runner is None:
            return self._variables.run(finish_at_once, coroutine)
        return self._runner.run(coroutine, context=self._variables)

    def leave(self, one: Entered, error: BaseException | None) -> None:
        """Close an object that the call has entered."""
        left = self._variables.run(one.leave, error)
        if one.is_async:
            self.finish(left)


def _answer(feature: IFeature, run_call: RunCall, pipe: Pipe, runtime: _CallRuntime) -> None:
    """Run a call, send its outcome, and then close the objects that it used."""
    pipe.send((_BEGUN, ()))
    caller = _PipeCaller(pipe, run_call)
    context = ToolContext(run_call.request_id, caller, run_call.principal, deadline=run_call.deadline, uri=run_call.uri)
    error, outcome = _run(feature, run_call, context, runtime)
    try:
        caller.send_outcome(outcome)
    except MemoryError as lack:
        error = lack
        caller.send_outcome(_too_large(feature))
    except Exception as unsendable:  # an output that cannot be pickled
        error = unsendable
        caller.send_outcome(Outcome(failure=traceback.format_exc()))
    if context.scope is not None:
        _close_scope(context.scope, error, feature, runtime)


def _run(
    feature: IFeature, run_call: RunCall, context: ToolContext, runtime: _CallRuntime
) -> tuple[BaseException | None, Outcome]:
    try:
        return None, Outcome(runtime.finish(feature.execute(run_call.arguments, context)))
    except ToolError as error:
        return error, Outcome(error=(error.message, error.meta))
    except MemoryError as error:
        return error, _too_large(feature)
    except BaseException as error:
        return error, Outcome(failure=traceback.format_exc())


def _too_large(feature: IFeature) -> Outcome:
    return Outcome(error=(f"Tool {feature.name} needs more memory than it may have", {"reason": "memory"}))


def _close_scope(scope: CallScope, error: BaseException | None, feature: IFeature, runtime: _CallRuntime) -> None:
    """Close the objects that the call has entered; its caller is already answered."""
    for one in scope.close():
        try:
            runtime.leave(one, error)
        except BaseException as problem:
            if problem is not error:
                _log.error("an object that tool %s used failed to close", feature.name, exc_info=problem)


def _limit_memory(max_bytes: int) -> None:
    import resource  # not on every platform

    resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))


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
            self._pipe.send((_DONE, outcome))

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._send("progress", progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        if level not in LEVELS:
            raise ValueError(f"There is no log level {level!r}; available: {', '.join(LEVELS)}")
        self._send("log", level, data, logger)

    def url_completed(self, reference: str) -> None:
        self._send("url_completed", reference)

    def hang_up(self) -> None:
        self._send("hang_up")

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return False

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return None

    async def ask(
        self, context: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        raise MissingCapability("Code that runs in a tool process cannot ask its caller", question.requires)

    async def visible_tools(self) -> tuple[ITool[Any, Any], ...]:
        raise RuntimeError("Code that runs in a tool process cannot list the tools of its caller; run it in the server")

    def _send(self, what: str, *content: Any) -> None:
        with self._sending:
            if not self._ended:
                self._pipe.send((what, content))
