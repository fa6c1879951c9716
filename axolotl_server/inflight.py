"""The calls that are running: counted, findable by their connection and id, stoppable together."""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest, Overloaded
from axolotl_core.layer import ToolCall
from axolotl_server.finalising import Finalising
from axolotl_server.peer import Connection
from axolotl_server.request import Request
from axolotl_server.zombies import Zombies

__all__ = ["InFlight"]

_RETRY_AFTER_SECONDS = 1.0
_MOST_NAMED = 100
"""How many calls are named in the log when all are stopped."""
_SHOWN_OF_AN_ID = 64

_log = logging.getLogger("axolotl")


class InFlight(dict[ToolCall, None]):
    """The table of running calls.

    A call is known by itself: ids of unrelated HTTP clients collide, so only a connection's own table is asked by id.
    It is a dict, so that a short call costs an entry and nothing else. A timer that runs only while something does
    has those calls watched for their caller's disconnection that it meets twice.
    """

    def __init__(self, limit: int, watch_after_seconds: float, grace_seconds: float = 0.02) -> None:
        super().__init__()
        self.limit = limit
        """How many calls may run; what goes on for nobody takes places away."""
        self.refused = 0
        """How many calls were not taken since the start."""
        self.grace_seconds = grace_seconds
        """How long a call that was stopped may take to end before its caller is answered without it."""
        self.zombies = Zombies(self._count)
        self.finalising = Finalising()
        """What was made for calls that were answered."""
        self.ticking = False
        self.attentive = False
        """Whether someone waits for calls to end, or watches some."""
        self._places = limit
        self._watch_after_seconds = watch_after_seconds
        self._met: list[ToolCall] = []
        self._watched: set[ToolCall] = set()
        self._drained: asyncio.Event | None = None

    def refusal(self) -> Overloaded:
        """Say why no further call is taken, and count it."""
        self.refused += 1
        message = "The server is busy; try again" if self._places else "The server is shutting down; try again"
        return Overloaded(message, _RETRY_AFTER_SECONDS)

    def enter_connection(self, call: ToolCall, connection: Connection) -> None:
        """Make a call findable by its id.

        Raises:
            InvalidRequest: if the connection has a running call of that id.
        """
        if call.request_id in connection.calls:
            raise InvalidRequest(f"Invalid request: a request with the id {call.request_id!r} is still running")
        connection.calls[call.request_id] = call

    def leave(self, call: ToolCall, connection: Connection | None) -> None:
        """Follow up on a call that was taken out; needed if it had a connection or somebody is attentive."""
        self._watched.discard(call)
        if call.lingers is None:
            self.zombies.remove(call)
        elif call.abandoned:
            call.lingers(partial(self.zombies.remove, call))
        self._forget(call, connection)

    def abandon(self, call: ToolCall, connection: Connection | None) -> None:
        """Take out a call whose code goes on for nobody."""
        del self[call]
        self._watched.discard(call)
        self.zombies.add(call)
        self._forget(call, connection)

    def _forget(self, call: ToolCall, connection: Connection | None) -> None:
        self.attentive = bool(self._watched) or self._drained is not None or len(self.zombies) > 0
        if connection is not None and connection.calls.get(call.request_id) is call:
            del connection.calls[call.request_id]
        if self._drained is not None and not self:
            self._drained.set()

    def tick_later(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timer; to be called when a call enters and it is not running."""
        self.ticking = True
        loop.call_later(self._watch_after_seconds, self._tick, loop)

    def refuse(self) -> None:
        """Take no further call."""
        self._places = 0
        self._count()

    async def drain(self, seconds: float) -> bool:
        """Take no further call and wait until nothing runs; answers False if something still does in the end."""
        self.refuse()
        if not self:
            return True
        self._drained, self.attentive = self._drained or asyncio.Event(), True
        try:
            async with asyncio.timeout(seconds):
                await self._drained.wait()
        except TimeoutError:
            return False
        return True

    def finalise(self, call: ToolCall) -> None:
        """Finalise what was made for a call, after its answer has left."""
        self.finalising.begin(call)

    async def finalised(self, seconds: float) -> None:
        """Wait until everything that was made for calls is finalised, but not for ever."""
        await self.finalising.finished(seconds)

    def stop_all(self, reason: CancelReason) -> None:
        """Stop every running call, and name them in the log."""
        calls = tuple(self)
        for call in calls[:_MOST_NAMED]:
            shown = repr(call.request_id)[:_SHOWN_OF_AN_ID]
            _log.warning("%s %s, request %s, is stopped: %s", call.spec.kind, call.spec.name, shown, reason)
        if len(calls) > _MOST_NAMED:
            _log.warning("%d more calls are stopped: %s", len(calls) - _MOST_NAMED, reason)
        for call in calls:
            call.stop(reason)

    def _count(self) -> None:
        self.limit = max(0, self._places - len(self.zombies))

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watch(call for call in self._met if call in self)
        self._met = [call for call in self if call not in self._watched]
        self.ticking = bool(self._met)
        if self.ticking:
            self.tick_later(loop)

    def _watch(self, calls: Iterable[ToolCall]) -> None:
        for call in calls:
            self._watched.add(call)
            self.attentive = True
            request = call.caller
            assert isinstance(request, Request)
            if request.era.cancel_on_disconnect:
                request.exchange.watch(call)
