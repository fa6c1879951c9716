"""Blocking work in a daemon thread, which does not keep the process alive."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_in_daemon_thread(name: str, work: Callable[[], T]) -> asyncio.Future[T]:
    """Start a thread of its own for the work; the future gets its result or its exception.

    `asyncio.to_thread` will not do for work that may never end: the process waits for its threads.
    """
    working: Future[T] = Future()
    working.set_running_or_notify_cancel()  # from now on, nobody but the thread ends it

    def run() -> None:
        try:
            working.set_result(work())
        except Exception as error:
            working.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return asyncio.wrap_future(working)
