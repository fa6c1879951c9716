"""Methods that run a feature, and the table of running calls."""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from asyncio import current_task
from collections import Counter
from typing import Any, Final

import msgspec
from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import (
    Detached,
    InternalError,
    InvalidArguments,
    InvalidParams,
    MethodNotFound,
    Overloaded,
    ProtocolError,
    ToolError,
)
from axolotl_core.layers import Call
from axolotl_core.protocol.result_keys import error_data
from axolotl_core.questions.question import needs_input
from axolotl_server.calls.asking import withdraw
from axolotl_server.calls.binding import Binding
from axolotl_server.execution.closing import ScopeCloser
from axolotl_server.execution.threads import Zombies
from axolotl_server.protocol.connection import Connection
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.replies import describe_stop, end_cancelled, error_reply, frame, hide
from axolotl_server.protocol.request import Request

_log = logging.getLogger("axolotl")

GRACE_SECONDS = 0.02
"""How long a stopped call may take to end before its caller is answered without it."""
_WATCH_AFTER_SECONDS = 0.05
"""How long a call runs before the server begins to check whether its client has disconnected."""
_RETRY_AFTER_SECONDS = 1.0
_MAX_NAMED_CALLS = 100
"""How many calls the log names when all are stopped."""
_MAX_ID_CHARACTERS = 64


_WATCHED: Final = 2
"""The ticks after which a call is watched, or no longer needs to be."""


class InFlight(dict[Call, int]):
    """The table of running calls, each with the ticks of a common timer that it has seen.

    IDs of unrelated HTTP clients collide, so a call is found by its ID only in the table of its connection. A call that
    sees the timer twice is slow: its client is kept waiting, and watched for its disconnection.
    """

    def __init__(
        self,
        limit: int,
        limit_per_principal: int,
    ) -> None:
        super().__init__()
        self.refused = 0
        """How many calls were refused since startup."""
        self.grace_seconds = GRACE_SECONDS
        """How long a stopped call may take to end before its caller is answered without it."""
        self.zombies = Zombies()
        self.scope_closer = ScopeCloser()
        self._capacity = limit
        self._limit_per_principal = limit_per_principal
        self._share_of: dict[Call, Share] = {}
        """Whom each call counts for, until its code has ended."""
        self._by_share: Counter[Share] = Counter()
        self._watch_after_seconds = _WATCH_AFTER_SECONDS
        self._is_ticking = False
        self._drained: asyncio.Event | None = None

    @property
    def free_capacity(self) -> int:
        """How many calls may run at once; zombies use some of the limit."""
        return max(0, self._capacity - len(self.zombies))

    def admit(self, call: Call, request: Request) -> Overloaded | None:
        """Add a call, or return the error for one that cannot run now."""
        exchange = request.exchange
        share = exchange.share
        if len(self) >= self.free_capacity:
            message = "The server is busy; try again" if self._capacity else "The server is shutting down; try again"
        elif share is not None and self._by_share[share] >= self._limit_per_principal:
            message = f"Too many calls are running: one caller may run {self._limit_per_principal} at once; try again"
        else:
            if share is not None:
                self._share_of[call] = share
                self._by_share[share] += 1
            self[call] = 0
            if not self._is_ticking:
                self._tick_later(exchange.loop)
            return None
        self.refused += 1
        if request.connection is not None:
            request.connection.unregister(call.request_id, call)
        return Overloaded(message, _RETRY_AFTER_SECONDS)

    def leave(self, call: Call, connection: Connection | None) -> None:
        """Remove a call whose code has ended, perhaps after it was abandoned."""
        share = self._share_of.pop(call, None)
        if share is not None:
            self._by_share[share] -= 1
            if not self._by_share[share]:
                del self._by_share[share]
        if call.abandoned:
            assert call.leftover is not None
            call.leftover.end()
        self._remove(call, connection)

    def abandon(self, call: Call, connection: Connection | None) -> None:
        """Remove a call whose caller is answered although its code is still running."""
        self.zombies.add(call)
        self._remove(call, connection)

    def free_id(self, call: Call, connection: Connection | None) -> None:
        """Let the client use the ID of a stopped call again at once, although its code may need some time to end."""
        self[call] = _WATCHED
        if connection is not None:
            connection.unregister(call.request_id, call)

    def _remove(self, call: Call, connection: Connection | None) -> None:
        self.pop(call, None)
        if connection is not None:
            connection.unregister(call.request_id, call)
        if self._drained is not None and not self:
            self._drained.set()

    def _tick_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_ticking = True
        loop.call_later(self._watch_after_seconds, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for call, ticks in tuple(self.items()):
            self[call] = ticks + 1
            if ticks + 1 == _WATCHED:
                request = _request_of(call)
                request.exchange.watch(call if request.era.cancel_on_disconnect else None)
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


class RequestTarget(msgspec.Struct, gc=False):
    """The feature that a request names."""

    binding: Binding[Any] | None
    """None if there is no such feature; then the target needs a check."""
    raw: bytes = b"{}"
    """The raw arguments."""
    uri: str = ""
    """The URI, if the feature is a resource."""
    needs_check: bool = False
    """Whether the method checks more of the request before it runs the feature."""


_CALLER_LEFT: Final = (CancelReason.CLIENT, CancelReason.OPERATOR, CancelReason.DISCONNECT)
"""The reasons for which a caller expects no answer."""


class FeatureMethod(ABC):
    """A method of the protocol that runs a feature."""

    def __init__(self, inflight: InFlight) -> None:
        self._inflight = inflight
        self._grace_seconds = inflight.grace_seconds

    @abstractmethod
    def locate(self, request: Request) -> RequestTarget:
        """Find the feature that a request names, or raise InvalidParams if it names none.

        Nothing else in the request is looked at, because the principal may not be allowed to know the feature.
        """

    async def not_found(self, request: Request) -> ProtocolError:
        """Make the error for a feature that does not exist; it suggests only names that the principal may know."""
        return MethodNotFound(f"Method not found: {request.head.method}")

    async def checked(self, target: RequestTarget, request: Request) -> Binding[Any]:
        """Return the binding of a target, or raise the ProtocolError that ends the request before anything runs."""
        if target.binding is None:
            raise await self.not_found(request)
        return target.binding

    @abstractmethod
    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        """Make the result of a call that failed with an error for the caller, or raise it as a ProtocolError."""

    def reply_to_protocol_error(self, error: ProtocolError, request: Request) -> bytes:
        """Make the result of a call whose code raised a ProtocolError, or raise it."""
        raise error

    async def call(self, request: Request) -> bytes | None:
        """Run the feature that a request names; the result is None if the caller expects no answer."""
        target = request.target or self.locate(request)
        binding: Any = await self.checked(target, request) if target.needs_check else target.binding
        head, exchange = request.head, request.exchange
        task = current_task(exchange.loop)
        assert task is not None
        inflight, connection = self._inflight, request.connection
        call = Call(
            head.id,  # type: ignore[arg-type]  # a message without an ID reaches no method
            request,
            exchange.principal,
            uri=target.uri,
            spec=binding.spec,
            raw=target.raw,
            task=task,
            overseer=self,
        )
        if head.params.request_state is not UNSET:
            request.era.open_rounds(request, call)
        if connection is not None:
            connection.register(call.request_id, call)
        refusal = inflight.admit(call, request)
        if refusal is not None:
            return self.reply_to_failure(refusal, request)
        cancelling = task.cancelling()
        try:
            output = await binding.invoke(call)
            if task.cancelling() > cancelling:
                await _withdraw_cancellation(call, task, cancelling)
            if call.token is None or call.token.reason is None:
                if request.rounds is not None and request.rounds.pending:
                    request.is_error = False
                    return request.era.input_required(request, call)  # even if the code handled the question itself
                result: bytes = binding.encode(output, request)
                return result
            return self._reply_unless_abandoned(call, task, request)
        except BaseException as error:
            return await self._reply_to_error(error, call, task, cancelling)
        finally:
            if call.scope is not None or request.held_progress is not None or request.questions is not None:
                self._clean_up(call, request)
            request.finished = True
            inflight.leave(call, connection)

    def _clean_up(self, call: Call, request: Request) -> None:
        """Send held-back progress, withdraw unanswered questions, and close the scope of the call."""
        if request.held_progress is not None:
            request.send_held_progress()
        for number, answered in (request.questions or {}).items():
            withdraw(request, number, answered)
        if call.scope is not None:
            self._inflight.scope_closer.close(call)

    def stopped(self, call: Call) -> None:
        """Give the code of a stopped call a moment to end; then answer its caller without it."""
        if call not in self._inflight:
            return  # it ended just before its client left
        request = _request_of(call)
        if call.cancel_reason in _CALLER_LEFT:
            request.finished = True
            self._inflight.free_id(call, request.connection)
        request.exchange.loop.call_later(self._grace_seconds, self._abandon, call, request)

    def _abandon(self, call: Call, request: Request) -> None:
        inflight = self._inflight
        if call not in inflight:
            return
        inflight.abandon(call, request.connection)
        reason = call.cancel_reason
        _log.warning(
            "%s %s was stopped (%s), but its code is still running",
            call.spec.kind,
            call.spec.name,
            reason,
            extra={"axolotl_call": call},
        )
        call.abandon()
        if call.scope is not None:
            inflight.scope_closer.close(call)
        request.finished = True
        request.exchange.reply_early(self._abandoned_reply(call, request), call.task)

    def _abandoned_reply(self, call: Call, request: Request) -> bytes | None:
        assert request.head.id is not UNSET
        try:
            result = self._reply_to_stop(call, request)
            return None if result is None else frame(request.head.id, result)
        except ProtocolError as error:
            return error_reply(error, request.head.id, request.era, request.exchange)

    async def _reply_to_error(
        self, error: BaseException, call: Call, task: asyncio.Task[object], cancelling: int
    ) -> bytes | None:
        request = _request_of(call)
        if task.cancelling() > cancelling:
            await _withdraw_cancellation(call, task, cancelling)
        if call.scope is not None:
            call.failure = error
        if call.cancelled:
            return self._reply_unless_abandoned(call, task, request)
        if isinstance(error, ProtocolError):
            return self.reply_to_protocol_error(error, request)
        if isinstance(error, Detached):
            raise error
        if needs_input(error):
            if request.asking is not None:
                return None  # the call is a task that runs again when the answer has arrived
            try:
                return request.era.input_required(request, call)
            except Exception as problem:
                error = problem
        return self.reply_to_failure(error if isinstance(error, ToolError) else hide(error, call), request)

    def _reply_unless_abandoned(self, call: Call, task: asyncio.Task[object], request: Request) -> bytes | None:
        task.uncancel()
        return None if call.abandoned else self._reply_to_stop(call, request)

    def _reply_to_stop(self, call: Call, request: Request) -> bytes | None:
        if call.cancel_reason in _CALLER_LEFT:
            end_cancelled(request, call.cancel_reason)
            return None
        return self.reply_to_failure(describe_stop(call), request)


async def _withdraw_cancellation(call: Call, task: asyncio.Task[object], before: int) -> None:
    """Withdraw a cancellation by the code of the call itself, so that the caller still gets its reply."""
    if call.cancelled:
        return  # the server has stopped the call
    while task.cancelling() > before:
        task.uncancel()
    with contextlib.suppress(asyncio.CancelledError):  # before Python 3.13, a withdrawn cancellation is still delivered
        await asyncio.sleep(0)


def _request_of(call: Call) -> Request:
    request = call.caller
    assert isinstance(request, Request)
    return request


class ErrorFeatureMethod(FeatureMethod):
    """A method that answers failures with JSON-RPC errors, because its results have no form for them."""

    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        if isinstance(error, InvalidArguments):
            raise InvalidParams(error.message) from None
        raise InternalError(error.message, data=error_data(error.meta)) from None
