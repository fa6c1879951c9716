"""Finalising what was made for calls, after their answers."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from axolotl_core.call_scope import Entered
from axolotl_core.errors import ToolCancelled
from axolotl_core.layer import ToolCall

__all__ = ["Finalising"]

_THREADS: Final = 128
"""One that leaves something may have to wait for a thread that was left behind, and must not keep others waiting."""

_log = logging.getLogger("axolotl")


class Finalising:
    """Leaves what calls have entered, the last first; what cannot wait is left in threads, because it may block."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, call: ToolCall) -> None:
        """Finalise in the background what was made for a call, if that was not done before."""
        assert call.scope is not None
        entered = call.scope.close()
        if entered:
            error = ToolCancelled(f"The call was stopped ({call.cancel_reason})") if call.cancelled else call.failure
            task = asyncio.get_running_loop().create_task(self._leave_all(entered, error, call))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        call.failure = None

    async def finished(self, seconds: float) -> None:
        """Wait until all is finalised, but not for ever; nothing can be finalised after that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:  # calls that end meanwhile begin more of it
                    await asyncio.wait(self._running)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _leave_all(self, entered: Sequence[Entered], error: BaseException | None, call: ToolCall) -> None:
        """Leave everything; what goes wrong is too late for the caller, and keeps nothing else from being left."""
        await asyncio.sleep(0)  # the answer goes first
        for one in entered:
            try:
                await (one.leave(error) if one.waits else self._leave_in_thread(one, error))
            except BaseException as problem:
                if _is_told_to_end(problem):
                    raise
                if problem is not error:
                    what = f"{call.spec.kind} {call.spec.name}"
                    _log.error("finalising what %s used failed", what, exc_info=problem)

    def _leave_in_thread(self, one: Entered, error: BaseException | None) -> "asyncio.Future[object]":
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="axolotl-finaliser")
        leave: Callable[[], object] = partial(one.leave, error)
        return asyncio.get_running_loop().run_in_executor(self._threads, contextvars.copy_context().run, leave)


def _is_told_to_end(problem: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(problem, asyncio.CancelledError) and task is not None and task.cancelling() > 0
