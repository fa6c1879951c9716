"""Tools that run in worker threads, away from the event loop."""

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from axolotl_core.layer import Invoke, ToolCall
from axolotl_core.spec import ToolSpec

__all__ = ["ThreadRunner"]


class ThreadRunner:
    """Runs tools in a pool of threads; a call that is cancelled leaves its thread behind to finish alone."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="axolotl-tool")

    def runner(self, spec: ToolSpec) -> Invoke:
        """Give what runs a tool in the pool."""
        execute = spec.tool.execute
        finish = asyncio.run if spec.tool.suspends else _finish

        def work(call: ToolCall) -> Any:
            return finish(execute(call.arguments, call))

        async def invoke(call: ToolCall) -> Any:
            variables = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(self._pool, variables.run, work, call)

        return invoke

    def close(self) -> None:
        """Take no more work; threads that still run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits, as those of plain functions do."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a plain function's tool waited for something: make the function async")
