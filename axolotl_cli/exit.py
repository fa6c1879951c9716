"""Exit codes, and the end of a process in which threads, tasks or the server are stuck."""

import atexit
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from queue import Empty, SimpleQueue
from typing import Final


class ExitCode(IntEnum):
    """The exit codes of commands."""

    DONE = 0
    TOOL_FAILED = 1
    """The tool answered with an error."""
    NOT_READY = 1
    """The server is not ready for calls."""
    BREAKING = 1
    """A change of the contract breaks callers, or could not be decided in continuous integration."""
    OVER_BUDGET = 1
    """The tools cost more tokens than allowed."""
    NOT_CONFIGURED = 2
    """The command line, the settings or the container are invalid."""
    REFUSED = 3
    """The server refused the request, for example because there is no such tool, or a prompt or resource failed."""
    UNREACHABLE = 3
    """No server answered."""
    RISKY = 4
    """Changes of the contract are risky, and none is breaking."""


_GRACE_SECONDS: Final = 1.0
_HURRIED_GRACE_SECONDS: Final = 0.2
_REPORT_SECONDS: Final = 0.5
_STUCK: Final = 1
"""The exit code of a process whose server did not stop in time."""

has_stuck_tasks: Final = threading.Event()
"""Set when tasks do not end, so that their event loop cannot be closed."""
is_in_hurry: Final = threading.Event()
"""Set when hardly anything is waited for any more."""


def grace_seconds() -> float:
    """Return how long a cancelled task or a thread may take to end."""
    return _HURRIED_GRACE_SECONDS if is_in_hurry.is_set() else _GRACE_SECONDS


def run_and_exit(main: Callable[[], object]) -> None:
    """Run the work of the process, and then end the process even if something is stuck."""
    try:
        main()
    except SystemExit as end:
        _exit_if_stuck(end.code)
        raise
    _exit_if_stuck(0)


def _exit_if_stuck(code: int | str | None) -> None:
    """End the process at once if something is stuck; Python itself would wait forever."""
    deadline = time.monotonic() + (0.0 if has_stuck_tasks.is_set() else grace_seconds())
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    stuck = [thread for thread in others if thread.is_alive()]
    if stuck or has_stuck_tasks.is_set():
        names = ", ".join(thread.name for thread in stuck) or "tasks of the event loop"
        logging.getLogger("axolotl").warning("exiting although these did not end: %s", names)
        atexit._run_exitfuncs()
        os._exit(code if isinstance(code, int) else int(code is not None))


def start_exit_timer() -> Callable[[float], None]:
    """Return a function that ends the process after some seconds, unless the process ends by itself.

    It may be called in a signal handler, and again to shorten the time.
    """
    timeouts: SimpleQueue[float] = SimpleQueue()  # its put is reentrant, which a lock is not

    def exit_in_time() -> None:
        seconds = timeouts.get()
        deadline = time.monotonic() + seconds
        with suppress(Empty):
            while True:
                timeout = timeouts.get(timeout=max(0.0, deadline - time.monotonic()))
                if time.monotonic() + timeout < deadline:
                    seconds, deadline = timeout, time.monotonic() + timeout
        exit_with_stack(seconds)

    threading.Thread(target=exit_in_time, name="axolotl-exit", daemon=True).start()
    return timeouts.put


def exit_with_stack(seconds: float) -> None:
    """End the process, whose server did not stop within some seconds, and log where it is stuck."""

    def log_stack() -> None:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(it has ended)"
        text = "the server did not stop within %g seconds: exiting; its main thread is here:\n%s"
        logging.getLogger("axolotl").critical(text, seconds, stack)

    reporting = threading.Thread(target=log_stack, daemon=True)
    reporting.start()
    reporting.join(_REPORT_SECONDS)  # nobody may read the log, or the main thread may be stuck in it
    os._exit(_STUCK)
