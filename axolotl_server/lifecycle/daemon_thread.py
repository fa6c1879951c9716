"""Blocking work in a daemon thread, which does not keep the process alive."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

T = TypeVar("T")


def run_in_daemon_thread(name: str, work: Callable[[], T]) -> asyncio.Future[T]:
    """Start a thread of its own for the work; the future gets its result or its exception.

    `asyncio.to_thread` will not do for work that may never end: the process waits for its threads.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(cast(T, result))
        else:
            future.set_exception(error)

    def run() -> None:
        result: T | None = None
        error: Exception | None = None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
