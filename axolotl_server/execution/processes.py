"""Tools that run in processes, which can be killed whatever the code does."""

import asyncio
import logging
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from axolotl_core.errors import ConfigurationError, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, Invoke
from axolotl_core.protocol.result_keys import own_meta
from axolotl_server.execution.threads import in_loop, loop_future

if TYPE_CHECKING:
    from axolotl_server.execution.process_messages import Outcome, ReadOutput, RunCall
    from axolotl_server.execution.process_pool import ProcessPool, ToolProcess

_WARM_AFTER_SECONDS: Final = 1.0
"""Short enough for the first call, long enough for commands that start a server only to inspect it."""

_log = logging.getLogger("axolotl")

_CRASHED: Final = own_meta(reason="crashed")


class WorkerFailed(Exception):
    """The code of a tool raised an exception in a process; the text is the traceback for the log."""


class ProcessRunner:
    """Runs tools in processes, of which every tool has its own.

    If a call is stopped, its process is killed, and no other call is lost. To be made in the thread of the loop.
    """

    def __init__(self, processes: int, max_memory_bytes: int | None) -> None:
        self._processes = processes
        self._max_memory_bytes = max_memory_bytes
        self._loop = asyncio.get_running_loop()
        self._adding = threading.Lock()
        self._pools: weakref.WeakSet[ProcessPool] = weakref.WeakSet()
        self.killed = 0
        """How many processes were killed because their call was stopped."""

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Return the function that runs a tool in a process; its processes end when it can no longer be called.

        A tool that cannot be sent to a process raises ConfigurationError.
        """
        from axolotl_server.execution.process_messages import read_output_of  # few servers have processes
        from axolotl_server.execution.process_pool import ProcessPool, ProcessTool

        _check_portable(spec)
        read_output = read_output_of(spec.feature, spec.kind)
        tool = ProcessTool(spec.feature, spec.kind, spec.limits.max_result_bytes or sys.maxsize)
        size = min(self._processes, spec.limits.max_concurrency or self._processes)
        pool = ProcessPool(tool, size, self._max_memory_bytes)
        with self._adding:
            self._pools.add(pool)
        in_loop(self._loop, partial(self._loop.call_later, _WARM_AFTER_SECONDS, pool.warm))
        tool_runner = _ToolRunner(pool, self, read_output)
        # In the loop, because the garbage collector may run in a thread that holds any lock. Not at exit, because a
        # fork of the server would end its processes.
        weakref.finalize(tool_runner, in_loop, self._loop, pool.close).atexit = False
        return tool_runner.invoke

    @property
    def processes(self) -> int:
        """The number of processes."""
        return sum(map(len, self._all_pools()))

    def close(self) -> None:
        """End all processes."""
        for pool in self._all_pools():
            pool.close()

    def _all_pools(self) -> "tuple[ProcessPool, ...]":
        with self._adding:
            return tuple(self._pools)


class _ToolRunner:
    """Runs the calls of one tool."""

    def __init__(self, pool: "ProcessPool", runner: ProcessRunner, read_output: "ReadOutput") -> None:
        self._pool = pool
        self._runner = runner
        self._read_output = read_output

    async def invoke(self, call: Call) -> Any:
        run = _Run(call)
        working = self._pool.threads.submit(_work, self._pool, run, self._read_output)
        try:
            return await loop_future(working)
        except asyncio.CancelledError:
            working.cancel()
            self._runner.killed += run.stop()
            raise


class _Run:
    """A call in a process, which may be killed while it runs the call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._process: ToolProcess | None = None
        self._stopped = False
        self._deciding = threading.Lock()

    def begin(self, process: "ToolProcess") -> bool:
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


def _work(pool: "ProcessPool", run: _Run, read_output: "ReadOutput") -> Any:
    """Run a call in a process of the pool, and return its output; None if the call was stopped before it began."""
    from axolotl_server.execution.process_messages import InvalidMessage
    from axolotl_server.execution.process_pool import NoProcess

    try:
        for last in (False, True):
            with pool.process() as process:
                if not run.begin(process):
                    return None
                try:
                    return _unwrap(process.run(_run_call(run.call), run.call), read_output)
                except InvalidMessage as problem:
                    process.kill()
                    raise _invalid(run.call, problem) from None
                except (EOFError, OSError):
                    crash = _crash(run.call, process.exit_code)
                    process.kill()  # its children are still running
                    if process.began or last:  # otherwise it had ended before the call, which can run in another one
                        raise crash from None
                finally:
                    run.end()
        return None
    except NoProcess as reason:
        raise ToolError(f"{_named(run.call.spec)} cannot run: {reason}", meta=_CRASHED) from None


def _run_call(call: Call) -> "RunCall":
    from axolotl_server.execution.process_messages import RunCall

    caller = call.request_id, call.principal, call.deadline, call.uri, call.client, call.trace, dict(call.meta)
    return RunCall(call.arguments, *caller)


def _unwrap(outcome: "Outcome", read_output: "ReadOutput") -> Any:
    """Return the output of a call, or raise its error."""
    from axolotl_server.execution.process_messages import (
        MAX_TEXT_CHARACTERS,
        InvalidMessage,
        ProcessFailure,
        ReportedError,
    )

    if isinstance(outcome, ProcessFailure):
        raise WorkerFailed(outcome.traceback[-MAX_TEXT_CHARACTERS:])
    try:
        if not isinstance(outcome, ReportedError):
            return read_output(outcome.data)
        meta = None if outcome.meta is None else msgspec.json.decode(outcome.meta, type=dict[str, Any])
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidMessage(str(error)) from error
    raise ToolError(outcome.message[:MAX_TEXT_CHARACTERS], meta=meta)


def _invalid(call: Call, problem: Exception) -> ToolError:
    _log.error("the process of %s %s sent an invalid message: %s", call.spec.kind, call.spec.name, problem)
    return ToolError(f"{_named(call.spec)} crashed: its process sent an invalid message", meta=_CRASHED)


def _crash(call: Call, exit_code: int | None) -> ToolError:
    ended = f"by signal {-exit_code}" if exit_code is not None and exit_code < 0 else f"with code {exit_code}"
    return ToolError(f"{_named(call.spec)} crashed: its process ended {ended}", meta=_CRASHED)


def _named(spec: FeatureSpec) -> str:
    return f"{spec.kind.title()} {spec.name}"


def _check_portable(spec: FeatureSpec) -> None:
    import pickle  # few servers have tool processes

    for what, thing in _pickled_objects(spec):
        try:
            arrived = pickle.loads(pickle.dumps(thing))
            if not isinstance(arrived, type(thing)):
                raise TypeError(f"something else is found by its name, {arrived!r}")
        except Exception as error:
            raise ConfigurationError(
                f"{_named(spec)} cannot run in a process, because {what} cannot be sent to one: {error}; "
                'define it at the top of a module and give it only what can be pickled, or use execution = "thread"'
            ) from error


def _pickled_objects(spec: FeatureSpec) -> Iterator[tuple[str, Any]]:
    """Return the objects that are sent to a process, as far as they are known before a call."""
    yield "it", spec.feature
    kind = getattr(spec.feature, "input_model", None)
    if isinstance(kind, type):
        yield "its input", kind
