"""Tools that run in worker processes, which can be ended whatever the code does."""

import asyncio
import pickle
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from axolotl_core.errors import ConfigurationError, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Invoke, ToolCall
from axolotl_server.execution.threads import in_loop

if TYPE_CHECKING:
    from axolotl_server.execution.process_pool import PooledTool, ProcessPool, ToolProcess
    from axolotl_server.execution.process_worker import Outcome, RunCall

_WARM_AFTER_SECONDS: Final = 1.0
"""Servers that are started to be looked at have ended by then."""

_CRASHED: Final = {"reason": "crashed"}


class WorkerFailed(Exception):
    """Code raised something in a worker process; the text is its traceback, for the log."""


class ProcessRunner:
    """Runs tools in processes, each tool in some of its own or those of a group together.

    A process whose call is stopped is killed, and only that call is lost. To be made where the loop runs.
    """

    def __init__(self, processes: int, max_memory_bytes: int | None) -> None:
        self._processes = processes
        self._max_memory_bytes = max_memory_bytes
        self._loop = asyncio.get_running_loop()
        self._joining = threading.Lock()
        self._crews: weakref.WeakSet[ProcessPool] = weakref.WeakSet()
        self._groups: weakref.WeakValueDictionary[str, ProcessPool] = weakref.WeakValueDictionary()
        self.killed = 0
        """How many workers were ended before their code was."""

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Give what runs a tool in a process; the processes end with the last who can call a tool of theirs.

        Raises:
            ConfigurationError: if the tool cannot travel to one.
        """
        _check_portable(spec)
        with self._joining:
            crew = self._crew(spec)
            skill = crew.join(spec.feature)
        in_loop(self._loop, partial(self._loop.call_later, _WARM_AFTER_SECONDS, crew.warm, skill))
        invocation = _Invocation(crew, skill, self)
        # Left in the loop, because the collector may find out in a thread that holds any lock. Not at exit: a fork of
        # the server would end its processes.
        weakref.finalize(invocation, in_loop, self._loop, partial(self._leave, crew, skill)).atexit = False
        return invocation.invoke

    @property
    def processes(self) -> int:
        """How many workers there are."""
        return sum(map(len, self._all_crews()))

    def close(self) -> None:
        """End every worker."""
        for crew in self._all_crews():
            crew.close()

    def _all_crews(self) -> "tuple[ProcessPool, ...]":
        with self._joining:
            return tuple(self._crews)

    def _crew(self, spec: FeatureSpec) -> "ProcessPool":
        """Find the crew of the tool's group, or make one."""
        from axolotl_server.execution.process_pool import ProcessPool  # few servers have processes

        group = spec.limits.pool
        crew = None if group is None else self._groups.get(group)
        if crew is not None and not crew.closed:
            return crew
        most = spec.limits.max_concurrency if group is None else None
        crew = ProcessPool(
            group or spec.feature.name, min(self._processes, most or self._processes), self._max_memory_bytes
        )
        self._crews.add(crew)
        if group is not None:
            self._groups[group] = crew
        return crew

    def _leave(self, crew: "ProcessPool", skill: "PooledTool") -> None:
        with self._joining:
            crew.leave(skill)


class _Invocation:
    """The calls of one tool."""

    def __init__(self, crew: "ProcessPool", skill: "PooledTool", runner: ProcessRunner) -> None:
        self._crew = crew
        self._skill = skill
        self._runner = runner

    async def invoke(self, call: ToolCall) -> Any:
        """Run a call in a worker, and kill the worker if the call is stopped."""
        run = _Run(call)
        working = self._crew.threads.submit(_work, self._crew, self._skill, run)
        try:
            outcome = await asyncio.wrap_future(working)
        except asyncio.CancelledError:
            self._runner.killed += run.stop()
            raise
        return _unpacked(outcome)


class _Run:
    """A call on its way through a worker, which may be killed for this call as long as it works for it."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self._worker: ToolProcess | None = None
        self._stopped = False
        self._deciding = threading.Lock()

    def begin(self, worker: "ToolProcess") -> bool:
        """Hold a worker; answers False if the call was stopped before."""
        with self._deciding:
            self._worker = None if self._stopped else worker
            return not self._stopped

    def end(self) -> None:
        """Let go of the worker."""
        with self._deciding:
            self._worker = None

    def stop(self) -> bool:
        """End the call; answers whether a worker was killed for that."""
        with self._deciding:
            self._stopped = True
            if self._worker is None:
                return False
            self._worker.kill()
            return True


def _work(crew: "ProcessPool", skill: "PooledTool", run: _Run) -> "Outcome | None":
    """Run a call in a worker of the crew; the answer is None for one that was stopped before it began."""
    from axolotl_server.execution.process_pool import NoProcess

    try:
        for last in (False, True):
            with crew.worker(skill) as worker:
                if not run.begin(worker):
                    return None
                try:
                    return worker.run(_job(run.call, skill), run.call)
                except (EOFError, OSError):
                    crash = _crash(run.call, worker.exit_code)
                    worker.kill()  # what it has started lives on
                    if worker.began or last:  # else it had ended before the call, which can have another one
                        raise crash from None
                finally:
                    run.end()
        return None
    except NoProcess as reason:
        raise ToolError(f"{_named(run.call.spec)} cannot run: {reason}", meta=_CRASHED) from None


def _job(call: ToolCall, skill: "PooledTool") -> "RunCall":
    from axolotl_server.execution.process_worker import RunCall

    caller = call.request_id, call.principal, call.deadline, call.uri, call.client, call.trace
    return RunCall(skill.number, call.arguments, *caller)


def _unpacked(outcome: "Outcome | None") -> Any:
    assert outcome is not None
    if outcome.told is not None:
        message, meta = outcome.told
        raise ToolError(message, meta=meta)
    if outcome.failure is not None:
        raise WorkerFailed(outcome.failure)
    return outcome.output


def _crash(call: ToolCall, exit_code: int | None) -> ToolError:
    ended = f"by signal {-exit_code}" if exit_code is not None and exit_code < 0 else f"with code {exit_code}"
    return ToolError(f"{_named(call.spec)} crashed: its process ended {ended}", meta=_CRASHED)


def _named(spec: FeatureSpec) -> str:
    return f"{spec.kind.title()} {spec.name}"


def _check_portable(spec: FeatureSpec) -> None:
    for what, thing in _travellers(spec):
        try:
            arrived = pickle.loads(pickle.dumps(thing))
            if not isinstance(arrived, type(thing)):
                raise TypeError(f"something else is found by its name, {arrived!r}")
        except Exception as error:
            raise ConfigurationError(
                f"{_named(spec)} cannot run in a process, because {what} cannot be sent to one: {error}; "
                'define it at the top of a module and give it only what can be pickled, or use execution = "thread"'
            ) from error


def _travellers(spec: FeatureSpec) -> Iterator[tuple[str, Any]]:
    """List what goes to a process and comes back, as far as it is known before there is a call."""
    yield "it", spec.feature
    for model in ("input_model", "output_model"):
        kind = getattr(spec.feature, model, None)
        if isinstance(kind, type):
            yield f"its {model.removesuffix('_model')}", kind
