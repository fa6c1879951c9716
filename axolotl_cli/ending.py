"""The end of the process: threads that do not end are left behind."""

import atexit
import logging
import os
import threading
import time

__all__ = ["leave"]

_GRACE_SECONDS = 1.0


def leave(code: int | str | None) -> None:
    """End the process at once if threads are stuck; Python itself would wait for them for ever."""
    stuck = _stuck_threads()
    if stuck:
        names = ", ".join(thread.name for thread in stuck)
        logging.getLogger("axolotl").warning("left behind, because they do not end: %s", names)
        atexit._run_exitfuncs()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _stuck_threads() -> list[threading.Thread]:
    deadline = time.monotonic() + _GRACE_SECONDS
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread for thread in others if thread.is_alive()]
