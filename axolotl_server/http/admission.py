"""The admission of requests over HTTP while the event loop is busy."""

from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import deque
from time import monotonic
from typing import Final

from axolotl_server.http.asgi import overloaded
from axolotl_server.protocol.fair_share import Share

MAX_LAG_SECONDS: Final = 0.08
"""How long a request may wait for a busy event loop before it gets 503."""
_LONG_TURN_SECONDS: Final = 0.02
"""When a turn of the event loop counts as long, so that further requests wait."""
_UNCHECKED_SECONDS: Final = 0.01
"""How long no request is checked after a turn that was not long."""
_WORK_SECONDS: Final = 0.002
"""How long the requests may take that are served in one turn while others wait; longer if reading takes long."""
_EMPTY_TURN_SECONDS: Final = 0.00005
"""A turn without requests that takes longer has accepted connections, or read or refused requests."""
_READING_SHARE: Final = 0.5
"""How long requests are read and refused between those that are served, as a share of the time for serving."""
_MIN_WAITING: Final = 16
"""How many requests may wait in any case, so that a few clients with long calls are not refused."""
_SMOOTHING: Final = 0.2


class Admission:
    """Lets requests wait or refuses them while code on the event loop takes longer than the requests leave time for.

    Calls that compute on the event loop never overlap, so their number says nothing about the load: requests wait in
    the buffers of sockets. This class measures how long a turn of the loop takes instead. In a long turn, requests wait
    in queues, one per principal, and are served in turn, a few in each turn of the loop, so that new requests are read
    in between. If they had to wait for too long, the newest of the longest queue are refused.

    A request costs one comparison with the clock. Every few milliseconds, one also measures the turn.
    """

    def __init__(self) -> None:
        self.check_at = 0.0
        """When the next request has to be checked with `admit`, by the monotonic clock."""
        self._max_lag_seconds = MAX_LAG_SECONDS
        self._is_measuring = False
        self._is_busy = False
        """Whether requests wait before they are served."""
        self._queues: dict[Share | None, deque[Future[bool]]] = {}
        """The requests that wait. The first queue is served next."""
        self._waiting = 0
        self._cost_seconds = 0.0
        """How long the loop takes per request that it serves, on average, with everything that it does in between."""
        self._work_seconds = 0.0
        """How long a request itself occupies the loop, on average."""
        self._served = 0
        """How many requests were let through at the last time."""
        self._served_at = self._work_began = self._work_ended = self._turn_began = 0.0
        self._is_working = False
        """Whether requests are served in the present turn; otherwise it only reads and refuses some."""

    async def admit(self, share: Share | None) -> None:
        """Wait until the request can be served; refuse it with 503 if that would take too long."""
        loop = get_running_loop()
        if not self._is_busy:
            if not self._is_measuring:
                self._is_measuring = True
                self.check_at = monotonic() + _LONG_TURN_SECONDS
                loop.call_soon(self._end_measuring)
                return
            self._is_busy, self.check_at, self._served = True, 0.0, 0
            self._turn_began = self._work_began = self._work_ended = monotonic()
            loop.call_soon(self._end_turn, loop)
        if self._is_too_long(self._waiting + 1) and not self._displace(share):
            raise overloaded("Service unavailable: the server is busy; try again")
        turn: Future[bool] = loop.create_future()
        self._queues.setdefault(share, deque()).append(turn)
        self._waiting += 1
        if not await turn:
            raise overloaded("Service unavailable: the server is busy; try again")

    def _is_too_long(self, waiting: int) -> bool:
        """Whether the last of these requests would wait for too long; a few may wait, however long each takes."""
        return waiting * self._cost_seconds > self._max_lag_seconds and waiting > _MIN_WAITING

    def _displace(self, share: Share | None) -> bool:
        """Refuse a request of another principal that has more of them waiting; return False if there is none."""
        longest = max(self._queues, key=self._length)
        if self._length(longest) <= self._length(share) + 1:
            return False
        self._refuse_newest(longest)
        return True

    def _length(self, share: Share | None) -> int:
        return len(self._queues.get(share, ()))

    def _refuse_newest(self, share: Share | None) -> None:
        self._finish(self._queues[share].pop(), share, served=False)

    def _finish(self, turn: Future[bool], share: Share | None, *, served: bool) -> bool:
        """End the wait of a request that was taken from its queue; return False if it no longer waits."""
        self._waiting -= 1
        if not self._queues[share]:
            del self._queues[share]
        if turn.done():
            return False
        turn.set_result(served)
        return True

    def _end_measuring(self) -> None:
        self._is_measuring = False
        if not self._is_busy:
            self.check_at = monotonic() + _UNCHECKED_SECONDS

    def _end_turn(self, loop: AbstractEventLoop) -> None:
        """Choose what the next turn of the loop does: read more requests, serve some, or no longer let them wait."""
        now = monotonic()
        seconds, self._turn_began = now - self._turn_began, now
        reading_seconds = (self._work_ended - self._work_began) * _READING_SHARE
        if self._is_working:
            self._is_working, self._work_ended = False, now
            work = (now - self._work_began) / self._served
            self._work_seconds = _smooth(self._work_seconds, work)
        elif seconds < _EMPTY_TURN_SECONDS or now - self._work_ended >= reading_seconds:
            if self._served:
                self._cost_seconds = _smooth(self._cost_seconds, (now - self._served_at) / self._served)
            self._serve(loop, now)
            if not self._served and seconds < _LONG_TURN_SECONDS:
                self._is_busy, self.check_at = False, now + _UNCHECKED_SECONDS
                return
        loop.call_soon(self._end_turn, loop)

    def _begin_work(self) -> None:
        self._work_began = monotonic()

    def _serve(self, loop: AbstractEventLoop, now: float) -> None:
        """Serve waiting requests in the next turn of the loop, and refuse those that would wait for too long."""
        while self._is_too_long(self._waiting):
            self._refuse_newest(max(self._queues, key=self._length))
        reading = self._work_began - self._served_at + now - self._work_ended if self._served else 0.0
        seconds = min(max(reading / _READING_SHARE, _WORK_SECONDS), _LONG_TURN_SECONDS)
        batch = max(1, int(seconds / self._work_seconds)) if self._work_seconds else 1
        loop.call_soon(self._begin_work)
        self._served, self._served_at = 0, now
        while self._queues and self._served < batch:
            share = next(iter(self._queues))
            queue = self._queues.pop(share)
            self._queues[share] = queue  # its next request is served after those of all others
            self._served += self._finish(queue.popleft(), share, served=True)
        self._is_working = self._served > 0


def _smooth(average: float, value: float) -> float:
    return average + (value - average) * _SMOOTHING if average else value
