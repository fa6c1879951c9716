"""The end of the process: threads and tasks that do not end are left behind."""

import atexit
import logging
import os
import threading
import time

__all__ = ["leave", "leave_tasks_behind"]

_GRACE_SECONDS = 1.0
_stuck_tasks = threading.Event()


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


def _stuck_threads() -> list[threading.Thread]:
    deadline = time.monotonic() + _GRACE_SECONDS
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread for thread in others if thread.is_alive()]
