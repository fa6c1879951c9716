"""The program of a tool process: it runs one call at a time."""

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
from typing import Any, Final, TypeVar

import msgspec

from axolotl_core.calls.context import ToolContext
from axolotl_core.calls.scope import CallScope, Entered
from axolotl_core.errors import MissingCapability, ToolError
from axolotl_core.features.feature import IFeature
from axolotl_core.protocol.identity import Implementation, Principal, RequestId
from axolotl_core.protocol.messages import LEVELS, LogLevel, TraceContext
from axolotl_core.questions.question import Question
from axolotl_server.execution.threads import finish_at_once

START_METHOD: Final = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"

_PR_SET_PDEATHSIG: Final = 1


def preload(module: str) -> None:
    """Have the process that others are forked from import a module once, unless somebody chose other modules for it."""
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver

        if getattr(forkserver._forkserver, "_preload_modules", None) == ["__main__"]:
            forkserver.set_forkserver_preload(["__main__", module])


def end_with_server() -> None:
    """Have this process, and its children, killed when the server is gone; to be called in a worker.

    A thread waits for that. Code that never lets another thread run is ended by the kernel, where it can do so.
    """
    if sys.platform != "win32":
        os.setsid()
    if sys.platform == "linux" and START_METHOD == "forkserver":
        _end_with_parent()
    threading.Thread(target=_wait_for_end, name="axolotl-tether", daemon=True).start()


def kill_family(pid: int) -> None:
    """End a worker and what it has started at once; nothing happens if it has ended already."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # one that has no group of its own yet
        os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def _end_with_parent() -> None:
    """Have the kernel end this process with the one it was forked from, which ends when nobody can ask it for more.

    A worker could: it inherits the end of a pipe by which one asks, and gives it up here.
    """
    import ctypes
    from multiprocessing import forkserver

    asking = getattr(forkserver._forkserver, "_forkserver_alive_fd", None)
    if asking is not None:
        vars(forkserver._forkserver)["_forkserver_alive_fd"] = None
        os.close(asking)
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
    """A tool, as it travels to a worker, which is answered with a traceback if the tool cannot be loaded there."""

    number: int
    feature: bytes
    members: frozenset[int]
    """The numbers of all tools that there are; a worker forgets the others."""


class RunCall(msgspec.Struct, frozen=True):
    """One call, as it travels to a worker that knows its tool."""

    number: int
    arguments: Any
    request_id: RequestId
    principal: Principal
    deadline: float | None
    uri: str
    client: Implementation | None
    trace: TraceContext | None


class Outcome(msgspec.Struct, frozen=True):
    """How a call ended in a worker: with an output, an error for the model, or a traceback for the log."""

    output: Any = None
    told: tuple[str, Mapping[str, Any] | None] | None = None
    failure: str | None = None


def work(pipe: Pipe, max_memory_bytes: int | None) -> None:
    """Learn tools and run calls as they come; the end of the pipe is the end of the process."""
    end_with_server()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the server, which ends its workers itself
    if max_memory_bytes is not None:
        _limit_memory(max_memory_bytes)
    features: dict[int, IFeature] = {}
    with contextlib.suppress(EOFError, ConnectionError), asyncio.Runner() as runner:
        while True:
            _work_once(features, pipe, runner)


def _work_once(features: dict[int, IFeature], pipe: Pipe, runner: asyncio.Runner) -> None:
    """Wait for a call and run it, or for a tool and learn it."""
    try:
        asked: RunCall | LoadTool = pipe.recv()
    except EOFError:
        raise
    except Exception:  # arguments that cannot arrive
        pipe.send((_DONE, Outcome(failure=traceback.format_exc())))
    else:
        if isinstance(asked, LoadTool):
            pipe.send(_learn(features, asked))
        else:
            feature = features[asked.number]
            _answer(feature, asked, pipe, _CallRuntime(feature, runner))


def _learn(features: dict[int, IFeature], lesson: LoadTool) -> str | None:
    """Load a tool, and forget those that are gone; answers with a traceback if it cannot be loaded."""
    for number in features.keys() - lesson.members:
        del features[number]
    try:
        features[lesson.number] = pickle.loads(lesson.feature)
    except BaseException:  # other tools live here too
        return traceback.format_exc()
    return None


class _CallRuntime:
    """In which the code of one call runs: context variables of its own, and the loop of the process if it waits."""

    def __init__(self, feature: IFeature, runner: asyncio.Runner) -> None:
        self._runner = runner if feature.suspends else None
        self._variables = contextvars.copy_context()

    def finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        if self._runner is None:
            return self._variables.run(finish_at_once, coroutine)
        return self._runner.run(coroutine, context=self._variables)

    def leave(self, one: Entered, error: BaseException | None) -> None:
        """Leave what the call has entered."""
        left = self._variables.run(one.leave, error)
        if one.is_async:
            self.finish(left)


def _answer(feature: IFeature, job: RunCall, pipe: Pipe, around: _CallRuntime) -> None:
    """Run a call, say how it ended, and then finalise what it used."""
    pipe.send((_BEGUN, ()))
    caller = _PipeCaller(pipe, job)
    context = ToolContext(job.request_id, caller, job.principal, deadline=job.deadline, uri=job.uri)
    error, outcome = _run(feature, job, context, around)
    try:
        caller.tell_outcome(outcome)
    except MemoryError as lack:
        error = lack
        caller.tell_outcome(_too_large(feature))
    except Exception as unsendable:  # an output that cannot travel
        error = unsendable
        caller.tell_outcome(Outcome(failure=traceback.format_exc()))
    if context.scope is not None:
        _finalise(context.scope, error, feature, around)


def _run(
    feature: IFeature, job: RunCall, context: ToolContext, around: _CallRuntime
) -> tuple[BaseException | None, Outcome]:
    try:
        return None, Outcome(around.finish(feature.execute(job.arguments, context)))
    except ToolError as error:
        return error, Outcome(told=(error.message, error.meta))
    except MemoryError as error:
        return error, _too_large(feature)
    except BaseException as error:
        return error, Outcome(failure=traceback.format_exc())


def _too_large(feature: IFeature) -> Outcome:
    return Outcome(told=(f"Tool {feature.name} needs more memory than it may have", {"reason": "memory"}))


def _finalise(scope: CallScope, error: BaseException | None, feature: IFeature, around: _CallRuntime) -> None:
    """Leave what the call has entered; what goes wrong is too late for its caller."""
    for one in scope.close():
        try:
            around.leave(one, error)
        except BaseException as problem:
            if problem is not error:
                _log.error("finalising what tool %s used failed", feature.name, exc_info=problem)


def _limit_memory(max_bytes: int) -> None:
    import resource  # not on every platform

    resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))


class _PipeCaller:
    """The caller, at the other end of the pipe; it hears, but cannot be asked, and hears nothing after the end."""

    def __init__(self, pipe: Pipe, job: RunCall) -> None:
        self._pipe = pipe
        self._speaking = threading.Lock()
        self._ended = False
        self.client = job.client
        self.trace = job.trace

    def tell_outcome(self, outcome: Outcome) -> None:
        """Say how the call ended; what its threads say later is dropped."""
        with self._speaking:
            self._ended = True
            self._pipe.send((_DONE, outcome))

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._say("progress", progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        if level not in LEVELS:
            raise ValueError(f"There is no log level {level!r}; there are: {', '.join(LEVELS)}")
        self._say("log", level, data, logger)

    def url_completed(self, reference: str) -> None:
        self._say("url_completed", reference)

    def hang_up(self) -> None:
        self._say("hang_up")

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return False

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return None

    async def ask(
        self, context: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        raise MissingCapability("Code that runs in a worker process cannot ask its caller", question.requires)

    def _say(self, what: str, *said: Any) -> None:
        with self._speaking:
            if not self._ended:
                self._pipe.send((what, said))
