"""Tools that run in worker threads, away from the event loop."""

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from axolotl_core.layer import Invoke, ToolCall
from axolotl_core.spec import FeatureSpec

__all__ = ["ThreadRunner"]


class _Raised(NamedTuple):
    """What a tool raised; a future would throw a GeneratorExit into the whole task instead of into the call."""

    error: BaseException


class ThreadRunner:
    """Runs tools in a pool of threads; a call that is cancelled leaves its thread behind to finish alone."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="axolotl-tool")

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Give what runs a tool in the pool."""
        execute = spec.feature.execute
        finish = asyncio.run if spec.feature.suspends else _finish

        def work(call: ToolCall) -> Any:
            try:
                return finish(execute(call.arguments, call))
            except BaseException as error:
                return _Raised(error)

        async def invoke(call: ToolCall) -> Any:
            _ = call.cancellation  # made before two threads may want to make it
            variables = contextvars.copy_context()
            outcome = await asyncio.get_running_loop().run_in_executor(self._pool, variables.run, work, call)
            if isinstance(outcome, _Raised):
                raise outcome.error
            return outcome

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
