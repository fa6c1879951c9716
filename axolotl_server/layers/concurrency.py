"""Limits on how many calls run at once: of a tool, of a tool set, of the whole server."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from time import monotonic
from typing import Any, Final
from weakref import WeakSet, WeakValueDictionary

from axolotl_core.errors import Overloaded
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke

_LEAST_RETRY_SECONDS: Final = 0.1


class Bulkhead:
    """Limits how many calls run at once; some more wait in a queue for a while, and all others are refused.

    A slot is free again when the code of its call has ended, which for a thread may be long after the call.
    """

    def __init__(self, what: str, limit: int, queue_limit: int, queue_seconds: float) -> None:
        self.running = 0
        self._what = what
        self._limit = limit
        self._queue_limit = queue_limit
        self._queue_seconds = queue_seconds
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._waiting_runs: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> bool:
        """Whether a call can run without waiting."""
        return self.running < self._limit and not self._waiting

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return len(self._waiting) + len(self._waiting_runs)

    async def wait(self) -> None:
        """Wait for a slot and take it, or raise Overloaded if the queue is full or the wait takes too long."""
        if len(self._waiting) >= self._queue_limit:
            raise self._refusal()
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._turn(self._waiting)
        except TimeoutError:
            raise self._refusal() from None

    async def wait_patiently(self) -> None:
        """Wait for a slot and take it, however long that takes; calls that wait only for a while come first."""
        await self._turn(self._waiting_runs)

    async def _turn(self, waiting: "deque[asyncio.Future[None]]") -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():  # it was given a slot at the same moment
                self.release()
            elif turn in waiting:
                waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give the slot to the call that has waited longest."""
        for waiting in (self._waiting, self._waiting_runs):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self.running -= 1

    def _refusal(self) -> Overloaded:
        retry = max(_LEAST_RETRY_SECONDS, self._queue_seconds)
        return Overloaded(f"{self._what} is busy: it runs at most {self._limit} at once; try again", retry)


class ConcurrencyLayer(ILayer):
    """Takes a slot for each call in every bulkhead that applies to its tool.

    The tool's own slot comes first, then that of its set, then the server's: a call that waits for a busy tool holds no
    slot that others could use.
    """

    def __init__(self, server: Bulkhead | None = None, toolsets: Mapping[str, Bulkhead] | None = None) -> None:
        self._server = server
        self._toolsets = toolsets or {}
        self.bulkheads: WeakSet[Bulkhead] = WeakSet()
        """The bulkheads in use, for the metrics."""
        self._own: WeakValueDictionary[tuple[str, int], Bulkhead] = WeakValueDictionary()
        """The bulkheads of features, by name and object: a tool that also runs as tasks is wrapped twice."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        limits, bulkheads = spec.limits, [*self.shared(spec)]
        if limits.max_concurrency is not None:
            own = Bulkhead(spec.name, limits.max_concurrency, limits.queue_limit, limits.queue_timeout_seconds)
            bulkheads.append(self._own.setdefault((spec.name, id(spec.feature)), own))
        invoke = call_next
        for bulkhead in bulkheads:
            self.bulkheads.add(bulkhead)
            invoke = within(bulkhead, invoke, lambda bulkhead, call: bulkhead.wait())
        return invoke

    def shared(self, spec: FeatureSpec) -> Iterator[Bulkhead]:
        """The bulkheads that a feature shares with others: that of the server, then that of its set."""
        bulkheads = self._server, self._toolsets.get(spec.toolset or "")
        return (bulkhead for bulkhead in bulkheads if bulkhead is not None)


def within(bulkhead: Bulkhead, call_next: Invoke, wait: Callable[[Bulkhead, Call], Awaitable[None]]) -> Invoke:
    """Take a slot for each call, and wait for it in this way if none is free."""

    async def admitted(call: Call) -> Any:
        if bulkhead.free:
            bulkhead.running += 1
        else:
            began = monotonic()
            await wait(bulkhead, call)
            call.queued_seconds += monotonic() - began
        try:
            return await call_next(call)
        finally:
            call.when_code_ended(bulkhead.release)

    return admitted
