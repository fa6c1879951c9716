"""Cleanup of the objects that calls used, and of the resources of a container."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

from dependency_injector import containers, providers

from axolotl_core.calls.scope import Entered
from axolotl_core.errors import ToolCancelled
from axolotl_core.layers import Call

CLOSE_SECONDS: Final = 5.0
"""How long closing may take at the end of a shutdown before the process exits."""
_THREADS: Final = 128
"""Many, because an object may wait for a thread of an abandoned call, and must not keep the others waiting."""

_log: Final = logging.getLogger("axolotl")


class ScopeCloser:
    """Closes the objects that calls have entered, the last first, in threads unless they can be awaited."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._running)

    def close(self, call: Call) -> None:
        """Close the scope of a call in the background, unless that was done before."""
        assert call.scope is not None
        entered = call.scope.close()
        if entered:
            error = ToolCancelled(f"The call was stopped ({call.cancel_reason})") if call.cancelled else call.failure
            task = asyncio.get_running_loop().create_task(self._leave_all(entered, error, call))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        call.failure = None

    async def wait_closed(self, seconds: float) -> None:
        """Wait until all scopes are closed, but no longer than this; nothing can be closed after that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:  # calls that end meanwhile add to it
                    await asyncio.wait(self._running)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _leave_all(self, entered: Sequence[Entered], error: BaseException | None, call: Call) -> None:
        await asyncio.sleep(0)  # the answer goes first
        for one in entered:
            try:
                await (one.leave(error) if one.is_async else self._leave_in_thread(one, error))
            except BaseException as problem:  # too late for the caller, and no reason to keep the others open
                task = asyncio.current_task()
                if isinstance(problem, asyncio.CancelledError) and task is not None and task.cancelling() > 0:
                    raise
                if problem is not error:
                    used_by = f"{call.spec.kind} {call.spec.name}"
                    _log.error("an object that %s used failed to close", used_by, exc_info=problem)

    def _leave_in_thread(self, one: Entered, error: BaseException | None) -> "asyncio.Future[object]":
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="axolotl-closer")
        leave: Callable[[], object] = partial(one.leave, error)
        return asyncio.get_running_loop().run_in_executor(self._threads, contextvars.copy_context().run, leave)


async def close_resources(container: containers.Container, seconds: float) -> None:
    """Shut down every resource that was started.

    Each gets `seconds`. A resource that fails or takes longer is logged, and the others are still shut down.
    """
    names = {id(provider): name for name, provider in container.providers.items()}
    for resource in closing_order(container):
        name = names.get(id(resource), "without a name")
        try:
            async with asyncio.timeout(seconds):
                outcome: Any = resource.shutdown()
                if inspect.isawaitable(outcome):
                    await outcome
        except TimeoutError:
            _log.error("resource %s did not close within %g seconds", name, seconds)
        except Exception:
            _log.exception("resource %s could not be closed", name)


def closing_order(container: containers.Container) -> list[Any]:
    """Return the resources that were started; a resource comes before those it depends on, even indirectly.

    Among independent resources, the last declared comes first; in a cycle, too.
    """
    positions = {id(provider): position for position, provider in enumerate(container.providers.values())}
    kinds = (providers.BaseResource,)
    started = [one for one in container.traverse(types=kinds) if one.initialized]
    started.sort(key=lambda one: positions.get(id(one), -1), reverse=True)
    dependencies = {id(one): {id(other) for other in one.traverse(types=kinds)} - {id(one)} for one in started}
    ordered: list[Any] = []
    while started:
        needed = set[int]().union(*(dependencies[id(one)] for one in started))
        ordered.append(next((one for one in started if id(one) not in needed), started[0]))
        started.remove(ordered[-1])
    return ordered
