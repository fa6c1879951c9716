"""The end of the process: threads and tasks that do not end are left behind, and so is a server that does not."""

import atexit
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from enum import IntEnum
from queue import Empty, SimpleQueue
from typing import Final


class ExitCode(IntEnum):
    """What became of a command."""

    DONE = 0
    TOOL_FAILED = 1
    """The tool answered, and its answer is an error."""
    NOT_READY = 1
    """A server says that no calls should come."""
    NOT_CONFIGURED = 2
    """The command line, the settings or the container are wrong."""
    REFUSED = 3
    """The server refused the request itself, as for a tool that is not there, or a prompt or a resource failed."""
    UNREACHABLE = 3
    """No server answered."""


_GRACE_SECONDS: Final = 1.0
_HASTY_GRACE_SECONDS: Final = 0.2
_STUCK: Final = 1
"""The exit code of a process whose server could not be stopped in order."""

_stuck_tasks = threading.Event()
_hastened = threading.Event()


def hasten() -> None:
    """Wait for hardly anything from now on."""
    _hastened.set()


def grace_seconds() -> float:
    """Say how long something that was told to end may take."""
    return _HASTY_GRACE_SECONDS if _hastened.is_set() else _GRACE_SECONDS


def leave_tasks_behind() -> None:
    """Note that there are tasks which do not end; the loop they belong to cannot be closed."""
    _stuck_tasks.set()


def leave(code: int | str | None) -> None:
    """End the process at once if something is stuck; Python itself would wait for them for ever."""
    stuck = _stuck_threads()
    if stuck or _stuck_tasks.is_set():
        names = ", ".join(thread.name for thread in stuck) or "tasks of the event loop"
        logging.getLogger("axolotl").warning("left behind, because they do not end: %s", names)
        atexit._run_exitfuncs()
        os._exit(code if isinstance(code, int) else int(code is not None))


def run_and_exit(main: Callable[[], object]) -> None:
    """Run the work of the process, and then end the process even if something is stuck."""
    try:
        main()
    except SystemExit as end:
        leave(end.code)
        raise
    leave(0)


def guard_ending() -> Callable[[float], None]:
    """Give a function that has the process ended after so many seconds, whatever it does, unless it ends by itself.

    It may be called in a signal handler, and again to shorten the time.
    """
    wishes: SimpleQueue[float] = SimpleQueue()  # whose put may interrupt itself, which no lock may
    threading.Thread(target=_guard, args=(wishes,), name="axolotl-ending", daemon=True).start()
    return wishes.put


def _guard(wishes: SimpleQueue[float]) -> None:
    seconds = wishes.get()
    due = time.monotonic() + seconds
    while (left := due - time.monotonic()) > 0:
        try:
            wish = wishes.get(timeout=left)
        except Empty:
            break
        seconds, due = min((seconds, due), (wish, time.monotonic() + wish), key=lambda one: one[1])
    _give_up(seconds)


def _give_up(seconds: float) -> None:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = "".join(traceback.format_stack(frame)) if frame is not None else "(it has ended)"
    log = logging.getLogger("axolotl")
    log.critical("the server did not stop within %g seconds and is ended; its main thread is here:\n%s", seconds, stack)
    os._exit(_STUCK)


def _stuck_threads() -> list[threading.Thread]:
    deadline = time.monotonic() + (0.0 if _stuck_tasks.is_set() else grace_seconds())
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread for thread in others if thread.is_alive()]
