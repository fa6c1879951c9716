"""The calls that are running: counted, findable by their connection and id, stoppable together."""

import asyncio

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest, Overloaded
from axolotl_core.layer import ToolCall
from axolotl_server.deadlines import DeadlineLane
from axolotl_server.peer import Request

__all__ = ["InFlight"]

_RETRY_AFTER_SECONDS = 1.0


class InFlight:
    """The table of running calls.

    A call is known by itself: ids of unrelated HTTP clients collide, so only a connection's own table is asked by id.
    """

    def __init__(self, limit: int, watch_after_seconds: float) -> None:
        self._limit = limit
        self._calls: dict[ToolCall, None] = {}
        self._unwatched = DeadlineLane(watch_after_seconds, _watch)
        self._refusal: str | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._calls)

    def enter(self, call: ToolCall, request: Request) -> None:
        """Note that a call begins.

        Raises:
            Overloaded: if too many are running, or the server is about to stop.
            InvalidRequest: if the connection has a running call of that id.
        """
        calls = self._calls
        if len(calls) >= self._limit or self._refusal is not None:
            raise Overloaded(self._refusal or "The server is busy; try again", _RETRY_AFTER_SECONDS)
        connection = request.connection
        if connection is not None:
            if call.request_id in connection.calls:
                raise InvalidRequest(f"Invalid request: a request with the id {call.request_id!r} is still running")
            connection.calls[call.request_id] = call
        calls[call] = None
        self._unwatched.add(call)

    def leave(self, call: ToolCall, request: Request) -> None:
        """Note that a call ended."""
        del self._calls[call]
        self._unwatched.discard(call)
        connection = request.connection
        if connection is not None:
            del connection.calls[call.request_id]
        if not self._calls:
            self._idle.set()

    def refuse_new(self, reason: str) -> None:
        """Answer every further call with a retryable refusal."""
        self._refusal = reason

    async def drain(self, seconds: float) -> bool:
        """Wait until nothing runs; answers False if something still does when the time is up."""
        if not self._calls:
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
        for call in tuple(self._calls):
            call.stop(reason)


def _watch(call: ToolCall) -> None:
    request = call.caller
    assert isinstance(request, Request)
    request.exchange.watch(call)
