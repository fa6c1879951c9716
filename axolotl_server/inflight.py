"""The calls that are running: counted, findable by their connection and id, stoppable together."""

import asyncio

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest, Overloaded
from axolotl_core.layer import ToolCall
from axolotl_server.peer import Request

__all__ = ["InFlight"]

_RETRY_AFTER_SECONDS = 1.0


class InFlight:
    """The table of running calls.

    A call is known by itself: ids of unrelated HTTP clients collide, so only a connection's own table is asked by id.
    Calls enter as young ones; a timer that runs only while there are some has those watched that it meets twice, so
    that a short call costs two dict entries and nothing else.
    """

    def __init__(self, limit: int, watch_after_seconds: float) -> None:
        self._limit = limit
        self._young: dict[ToolCall, None] = {}
        self._watched: dict[ToolCall, None] = {}
        self._waiting: dict[ToolCall, None] = {}
        self._watch_after_seconds = watch_after_seconds
        self._ticking = False
        self._running = 0
        self._refusal: str | None = None
        self._idle = asyncio.Event()

    def __len__(self) -> int:
        return self._running

    def enter(self, call: ToolCall, request: Request) -> None:
        """Note that a call begins.

        Raises:
            Overloaded: if too many are running, or the server is about to stop.
            InvalidRequest: if the connection has a running call of that id.
        """
        if self._running >= self._limit or self._refusal is not None:
            raise Overloaded(self._refusal or "The server is busy; try again", _RETRY_AFTER_SECONDS)
        connection = request.connection
        if connection is not None:
            if call.request_id in connection.calls:
                raise InvalidRequest(f"Invalid request: a request with the id {call.request_id!r} is still running")
            connection.calls[call.request_id] = call
        self._running += 1
        self._young[call] = None
        if not self._ticking:
            self._tick_later(request.exchange.loop)

    def leave(self, call: ToolCall, request: Request) -> None:
        """Note that a call ended."""
        self._running -= 1
        if self._young.pop(call, self) is self and self._waiting.pop(call, self) is self:
            del self._watched[call]
        connection = request.connection
        if connection is not None:
            del connection.calls[call.request_id]
        if self._refusal is not None and not self._running:
            self._idle.set()

    def refuse_new(self, reason: str) -> None:
        """Answer every further call with a retryable refusal."""
        self._refusal = reason

    async def drain(self, seconds: float) -> bool:
        """Wait until nothing runs; answers False if something still does when the time is up."""
        if not self._running:
            return True
        self._idle.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def stop_all(self, reason: CancelReason) -> None:
        """Stop every running call."""
        for call in (*self._young, *self._waiting, *self._watched):
            call.stop(reason)

    def _tick_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ticking = True
        loop.call_later(self._watch_after_seconds, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for call in self._waiting:
            request = call.caller
            assert isinstance(request, Request)
            request.exchange.watch(call)
        self._watched.update(self._waiting)
        self._waiting, self._young = self._young, {}
        self._ticking = False
        if self._waiting:
            self._tick_later(loop)
