"""The life of a call, and the table of the calls that run.

    running ── stop(reason) ──> stopped ── the code ends ──> ended
       │                           └────── too late ───────> abandoned: what still runs is the leftover of the call
       └────── the code ends ──────────────────────────────> ended

Only this module changes the state of a call that a client made, and with it what follows from the state: which calls
count as running, whether the line to the caller is open, and whose ID is in use on a connection.
"""

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Detached, Overloaded, ProtocolError, ToolError
from axolotl_core.layers import Call, CallState
from axolotl_core.questions.question import needs_input
from axolotl_server.calls.asking import withdraw
from axolotl_server.execution.closing import ScopeCloser
from axolotl_server.execution.threads import Zombies
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.replies import CALLER_LEFT, describe_stop, error_reply, frame, hide, reply_to_nobody

if TYPE_CHECKING:
    from axolotl_server.calls.binding import Binding
    from axolotl_server.calls.feature_method import FeatureMethod
    from axolotl_server.protocol.request import Request

GRACE_SECONDS: Final = 0.02
"""How long a stopped call may take to end before its caller is answered without it."""
_WATCH_AFTER_SECONDS: Final = 0.05
"""How long a call runs before the server begins to check whether its client has disconnected."""
_WATCHED: Final = 2
"""The ticks after which a call is watched."""
_RETRY_AFTER_SECONDS: Final = 1.0
_MAX_NAMED_CALLS: Final = 100
"""How many calls the log names when all are stopped."""
_MAX_ID_CHARACTERS: Final = 64

_log = logging.getLogger("axolotl")

_RUNNING, _ABANDONED = CallState.RUNNING, CallState.ABANDONED


class RunningCall(Call, eq=False, kw_only=True):
    """A call that a client made: it runs until its code ends, or until it is stopped."""

    method: "FeatureMethod"
    binding: "Binding[Any]"
    calls: "RunningCalls"
    share: Share | None = None
    """Whom it counts for until its code has ended; None if it is not limited."""
    _grace: asyncio.TimerHandle | None = None
    """Ends the time that a stopped call may take to end."""

    if TYPE_CHECKING:
        caller: Request
        task: asyncio.Task[object]

    def stop(self, reason: CancelReason) -> None:
        """Running → stopped: cancel the code. If it does not end soon, the caller is answered without it."""
        if self.state is not _RUNNING:
            return
        self.state = CallState.STOPPED
        request, token = self.caller, self.cancellation
        token.cancel(reason)
        self.task.cancel()
        if token.reason in CALLER_LEFT:  # code may have cancelled its token for another reason, which counts
            request.finished = True
            self.calls.free_id(self)
        self._grace = request.exchange.loop.call_later(self.calls.grace_seconds, self._give_up)

    def end(self) -> None:
        """Running or stopped → ended. The code of an abandoned call is no longer a leftover."""
        request, calls = self.caller, self.calls
        if self.scope is not None or request.held_progress is not None or request.questions is not None:
            self._clean_up()
        request.finished = True
        if self.share is not None:
            calls.give_back(self.share)
        if self.state is not _RUNNING:
            self.task.uncancel()
            if self.state is _ABANDONED:
                assert self.leftover is not None
                self.leftover.end()
                return
            assert self._grace is not None
            self._grace.cancel()
        self.state = CallState.ENDED
        calls.remove(self)

    def refuse(self) -> None:
        """Running or stopped → refused: the code never runs."""
        if self._grace is not None:
            self._grace.cancel()
            self.task.uncancel()
        self.state = CallState.REFUSED
        self.calls.free_id(self)

    def _give_up(self) -> None:
        """Stopped → abandoned: answer the caller; the code is a leftover until it ends."""
        request, calls, reply = self.caller, self.calls, self._early_reply()
        calls.zombies.add(self)
        calls.remove(self)
        kind, name, details = self.spec.kind, self.spec.name, {"axolotl_call": self}
        _log.warning(
            "%s %s was stopped (%s), but its code is still running", kind, name, self.cancel_reason, extra=details
        )
        self.abandon()
        if self.scope is not None:
            calls.scope_closer.close(self)
        request.finished = True
        request.exchange.reply_early(reply, self.task)

    def reply(self, output: Any = None, error: BaseException | None = None) -> bytes | None:
        """Decide the reply: a result, None if the caller expects none, or a ProtocolError that is raised.

        What the code returned or raised counts only if the call was not stopped.
        """
        request, token = self.caller, self.token
        reason = None if token is None else token.reason
        if self.scope is not None:
            self.failure = error
        if self.state is _ABANDONED:
            return None  # it has got its reply
        if reason is not None:
            if reason in CALLER_LEFT:
                return reply_to_nobody(request, reason)
            return self.method.reply_to_failure(describe_stop(self), request)
        if error is None:
            try:
                if request.rounds is None or not request.rounds.pending:
                    return self.binding.encode(output, request)
                request.is_error = False
                return request.era.input_required(request, self)  # even if the code handled the question itself
            except BaseException as problem:
                return self.reply(error=problem)
        if isinstance(error, ProtocolError):
            return self.method.reply_to_protocol_error(error, request)
        if isinstance(error, Detached):
            raise error
        if needs_input(error):
            if request.asking is not None:
                return None  # the call is a task that runs again when the answer has arrived
            try:
                return request.era.input_required(request, self)
            except Exception as problem:
                return self._reply_to_failure(problem)
        return self._reply_to_failure(error)

    def _reply_to_failure(self, error: BaseException) -> bytes:
        return self.method.reply_to_failure(error if isinstance(error, ToolError) else hide(error, self), self.caller)

    def _early_reply(self) -> bytes | None:
        request = self.caller
        try:
            result = self.reply()
        except ProtocolError as error:
            return error_reply(error, self.request_id, request.era, request.exchange)
        return None if result is None else frame(self.request_id, result)

    def _clean_up(self) -> None:
        """Send held-back progress, withdraw unanswered questions, and close the scope of the call."""
        request = self.caller
        if request.held_progress is not None:
            request.send_held_progress()
        for number, answered in (request.questions or {}).items():
            withdraw(request, number, answered)
        if self.scope is not None:
            self.calls.scope_closer.close(self)


class RunningCalls(dict[RunningCall, int]):
    """The table of running calls, each with the ticks of a common timer that it has seen.

    IDs of unrelated HTTP clients collide, so a call is found by its ID only in the table of its connection. A call that
    sees the timer twice is slow: its client is kept waiting, and watched for its disconnection.
    """

    def __init__(self, limit: int, limit_per_principal: int) -> None:
        super().__init__()
        self.refused = 0
        """How many calls were refused since startup."""
        self.grace_seconds = GRACE_SECONDS
        """How long a stopped call may take to end before its caller is answered without it."""
        self.zombies = Zombies()
        self.scope_closer = ScopeCloser()
        self._capacity = limit
        self._limit_per_principal = limit_per_principal
        self._by_share: Counter[Share] = Counter()
        """How many calls of each caller have code that runs."""
        self._watch_after_seconds = _WATCH_AFTER_SECONDS
        self._is_ticking = False
        self._drained: asyncio.Event | None = None

    @property
    def free_capacity(self) -> int:
        """How many calls may run at once; zombies use some of the limit."""
        return max(0, self._capacity - len(self.zombies))

    def enter(self, call: RunningCall) -> Overloaded | None:
        """Add a call that is about to run, or return the error for one that cannot run now."""
        connection, exchange = call.caller.connection, call.caller.exchange
        if connection is not None:
            connection.register(call.request_id, call)
        share = exchange.share
        if len(self) + len(self.zombies.calls) >= self._capacity:
            message = "The server is busy; try again" if self._capacity else "The server is shutting down; try again"
        elif share is not None and self._by_share[share] >= self._limit_per_principal:
            message = f"Too many calls are running: one caller may run {self._limit_per_principal} at once; try again"
        else:
            if share is not None:
                call.share = share
                self._by_share[share] += 1
            self[call] = 0
            if not self._is_ticking:
                self._tick_later(exchange.loop)
            return None
        self.refused += 1
        call.refuse()
        return Overloaded(message, _RETRY_AFTER_SECONDS)

    def remove(self, call: RunningCall) -> None:
        """Remove a call that has ended, or whose caller is answered although its code is still running."""
        del self[call]
        connection = call.caller.connection
        if connection is not None:
            connection.unregister(call.request_id, call)
        if self._drained is not None and not self:
            self._drained.set()

    def free_id(self, call: RunningCall) -> None:
        """Let the client use the ID of a call again."""
        connection = call.caller.connection
        if connection is not None:
            connection.unregister(call.request_id, call)

    def give_back(self, share: Share) -> None:
        """Let a caller run another call, because the code of one has ended."""
        self._by_share[share] -= 1
        if not self._by_share[share]:
            del self._by_share[share]

    def _tick_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_ticking = True
        loop.call_later(self._watch_after_seconds, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for call, ticks in tuple(self.items()):
            self[call] = ticks + 1
            request = call.caller
            if ticks + 1 == _WATCHED and not request.finished:
                request.exchange.watch(call.stop if request.era.cancel_on_disconnect else None)
        self._is_ticking = False
        if any(ticks < _WATCHED for ticks in self.values()):
            self._tick_later(loop)

    def refuse(self) -> None:
        """Refuse further calls."""
        self._capacity = 0

    async def drain(self, seconds: float) -> bool:
        """Refuse further calls and wait until none is running, or return False when the time is up."""
        self.refuse()
        if not self:
            return True
        self._drained = self._drained or asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await self._drained.wait()
        except TimeoutError:
            return False
        return True

    def stop_all(self, reason: CancelReason) -> None:
        """Stop every running call, and name them in the log."""
        calls = tuple(self)
        for call in calls[:_MAX_NAMED_CALLS]:
            shown = repr(call.request_id)[:_MAX_ID_CHARACTERS]
            _log.warning("%s %s, request %s, is stopped: %s", call.spec.kind, call.spec.name, shown, reason)
        if len(calls) > _MAX_NAMED_CALLS:
            _log.warning("%d more calls are stopped: %s", len(calls) - _MAX_NAMED_CALLS, reason)
        for call in calls:
            call.stop(reason)
