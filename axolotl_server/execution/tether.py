"""Worker processes end with their server, however that ends, and take with them what they have started."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import wait
from typing import Final

__all__ = ["START_METHOD", "end_with_server", "kill_family", "preload"]

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
