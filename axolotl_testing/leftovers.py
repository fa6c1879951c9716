"""Leftovers of a block: calls, objects of calls, threads and processes that should have ended."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any, Final

import pytest

from axolotl_server.host import ServerHost
from axolotl_testing.findings import indented

_TIMEOUT_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.01
_LIBRARY: Final = {Path(threading.__file__).parent, Path(asyncio.__file__).parent, Path(futures.__file__).parent}
_WAITING: Final = ("queue.py", "threading.py")
_POOLS: Final = {"_worker": "concurrent/futures/thread.py", "run": "anyio/_backends/_asyncio.py"}
"""The functions in which threads of pools wait for work, and their files."""
_PROCESS_POOL: Final = "axolotl_server/execution/process_pool.py"
_PROC: Final = Path("/proc")


class Leftovers:
    """Compares the threads and processes after a block with those before it."""

    def __init__(self) -> None:
        self._threads = {*threading.enumerate()}
        self._processes = {*_child_processes()}
        self._calls: list[str] = []

    async def watch(self, host: ServerHost) -> None:
        """Give calls a moment to end, and note those that have not, before the server stops."""
        inflight = host.assembly.inflight
        await _until(lambda: not inflight and not inflight.zombies and not inflight.scope_closer)
        running = [call.spec.name for call in inflight]
        self._calls = [f"the code of {name}, which still runs" for name in (*running, *inflight.zombies.by_name())]
        if inflight.scope_closer:
            self._calls.append(f"{len(inflight.scope_closer)} calls whose objects are not closed")

    async def check(self) -> None:
        """Fail the test if something is left over."""
        __tracebackhide__ = True
        await _until(lambda: not any(self._found()))
        found = [*dict.fromkeys(self._calls), *self._found()]
        if found:
            pytest.fail(f"The block left over:{indented(found)}", pytrace=False)

    def _found(self) -> Iterator[str]:
        for thread in threading.enumerate():
            frame = sys._current_frames().get(thread.ident or 0)
            if thread not in self._threads and not _is_idle(frame):
                yield f"thread {thread.name!r}{_place(frame)}"
        for number in {*_child_processes()} - self._processes:
            yield f"process {number}: {_command_line(number)}"


async def _until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that has no event, but not for long."""
    end = asyncio.get_running_loop().time() + _TIMEOUT_SECONDS
    while not condition() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_STEP_SECONDS)


def _is_idle(frame: Any) -> bool:
    """Tell whether a thread has ended, waits for work in a pool, or prepares the processes of tools.

    Event loops and libraries keep threads of pools for the next call. Calls in processes are known as calls.
    """
    files = [one.f_code.co_filename for one in _stack(frame)]
    if not files or any(file.endswith(_PROCESS_POOL) for file in files):
        return True
    inner = next((one for one in _stack(frame) if Path(one.f_code.co_filename).name not in _WAITING), frame)
    return bool(inner.f_code.co_filename.endswith(_POOLS.get(inner.f_code.co_name, "\0")))


def _place(frame: Any) -> str:
    """Describe where a thread is: in the innermost function outside of the standard library, if there is one."""
    frames = [*_stack(frame)]
    shown = next((one for one in frames if Path(one.f_code.co_filename).parent not in _LIBRARY), frames[0])
    return f", in {shown.f_code.co_name} ({shown.f_code.co_filename}:{shown.f_lineno})"


def _stack(frame: Any) -> Iterator[Any]:
    """Return the frames of a thread, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _child_processes() -> Iterator[int]:
    """Find the running child processes of this process, except those that serve all of it; only Linux has a list."""
    kept = _service_processes()
    for task in (_PROC / "self/task").glob("*/children"):
        try:
            numbers = [int(word) for word in task.read_text().split()]
        except OSError:  # the thread has ended
            continue
        yield from (number for number in numbers if number not in kept and _is_running(number))


def _service_processes() -> set[int | None]:
    """Find the processes that the module multiprocessing keeps until the end."""
    modules = sys.modules
    tracker: Any = getattr(modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    server: Any = getattr(modules.get("multiprocessing.forkserver"), "_forkserver", None)
    return {getattr(tracker, "_pid", None), getattr(server, "_forkserver_pid", None)}


def _is_running(number: int) -> bool:
    try:
        return (_PROC / str(number) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _command_line(number: int) -> str:
    try:
        return (_PROC / str(number) / "cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return "it has just ended"
