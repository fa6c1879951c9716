"""A time limit for code supplied by users, which may hang, ignore cancellation or try to exit."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_abandoned: Final[set[asyncio.Task[Any]]] = set()
"""Tasks that still run although nobody waits for them; the event loop itself keeps only weak references."""


class NoAnswer(TimeoutError):
    """The code did not answer in time."""


class CodeExited(Exception):
    """The code raised something that must not reach the event loop, such as SystemExit; it is the `__cause__`."""


async def answer_within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Return what the work returns, or raise what it raises; raises NoAnswer if it takes longer.

    The work runs in its own task, so that code which ignores its cancellation is abandoned instead of waited for.
    """
    task = asyncio.get_running_loop().create_task(_contained(work))
    try:
        await asyncio.wait((task,), timeout=seconds)
    finally:
        if not task.done():
            _abandoned.add(task)
            task.add_done_callback(_forget)
            task.cancel()
    if not task.done():
        raise NoAnswer(f"no answer within {seconds:g} seconds")
    return task.result()


async def _contained(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except Exception:
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise CodeExited(type(error).__name__) from error


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # marks it as retrieved, so that asyncio does not log it
