"""Failures that no result can tell, as those of prompts and resources: an error of the protocol does."""

import asyncio
import contextvars
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.calls.scope import Entered
from axolotl_core.errors import (
    InternalError,
    InvalidArguments,
    InvalidParams,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    RequestCancelled,
    ResultTooLarge,
    ToolCancelled,
    ToolError,
)
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ToolCall
from axolotl_core.protocol.wire import encode
from axolotl_core.questions.question import only_asks
from axolotl_server.calls.binding import Binding
from axolotl_server.execution.threads import Zombies
from axolotl_server.messages.connection import Connection
from axolotl_server.messages.replies import RESULT, describe_stop, error_reply, hide
from axolotl_server.messages.request import Request
from axolotl_server.questions.asking import withdraw

_THREADS: Final = 128
"""One that leaves something may have to wait for a thread that was left behind, and must not keep others waiting."""

_log = logging.getLogger("axolotl")


class ScopeCloser:
    """Leaves what calls have entered, the last first; what cannot wait is left in threads, because it may block."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, call: ToolCall) -> None:
        """Finalise in the background what was made for a call, if that was not done before."""
        assert call.scope is not None
        entered = call.scope.close()
        if entered:
            error = ToolCancelled(f"The call was stopped ({call.cancel_reason})") if call.cancelled else call.failure
            task = asyncio.get_running_loop().create_task(self._leave_all(entered, error, call))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        call.failure = None

    async def finished(self, seconds: float) -> None:
        """Wait until all is finalised, but not for ever; nothing can be finalised after that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:  # calls that end meanwhile begin more of it
                    await asyncio.wait(self._running)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _leave_all(self, entered: Sequence[Entered], error: BaseException | None, call: ToolCall) -> None:
        """Leave everything; what goes wrong is too late for the caller, and keeps nothing else from being left."""
        await asyncio.sleep(0)  # the answer goes first
        for one in entered:
            try:
                await (one.leave(error) if one.waits else self._leave_in_thread(one, error))
            except BaseException as problem:
                if _is_told_to_end(problem):
                    raise
                if problem is not error:
                    what = f"{call.spec.kind} {call.spec.name}"
                    _log.error("finalising what %s used failed", what, exc_info=problem)

    def _leave_in_thread(self, one: Entered, error: BaseException | None) -> "asyncio.Future[object]":
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="axolotl-finaliser")
        leave: Callable[[], object] = partial(one.leave, error)
        return asyncio.get_running_loop().run_in_executor(self._threads, contextvars.copy_context().run, leave)


def _is_told_to_end(problem: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(problem, asyncio.CancelledError) and task is not None and task.cancelling() > 0


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
        self.finalising = ScopeCloser()
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


_UNWANTED: Final = (CancelReason.CLIENT, CancelReason.DISCONNECT)
"""Why a caller hears nothing more, not even an answer."""

_log = logging.getLogger("axolotl")


class FeatureMethod(ABC):
    """A method of the protocol that runs a tool, a prompt or a resource."""

    def __init__(self, inflight: InFlight) -> None:
        self._inflight = inflight
        self._grace_seconds = inflight.grace_seconds

    @abstractmethod
    def find(self, request: Request) -> tuple[Binding[FeatureSpec], bytes, str]:
        """Find what a request wants run: its binding, the raw arguments, and the URI where it has one.

        Raises:
            ProtocolError: if there is no such thing, or the parameters are wrong.
        """

    @abstractmethod
    def tell(self, error: ToolError, request: Request) -> bytes:
        """Answer a call that failed in a way the caller may read about.

        Raises:
            ProtocolError: where the failure is an error of the protocol.
        """

    def tell_protocol_error(self, error: ProtocolError, request: Request) -> bytes:
        """Answer a call whose code raised an error of the protocol itself.

        Raises:
            ProtocolError: that error, where there is no better way to tell it.
        """
        raise error

    async def call(self, request: Request) -> bytes | None:
        """Run it; the answer is None if the caller no longer wants one."""
        binding, raw, uri = self.find(request)
        head, exchange = request.head, request.exchange
        assert head.id is not UNSET
        task = asyncio.current_task(exchange.loop)
        assert task is not None
        inflight, connection = self._inflight, request.connection
        if len(inflight) >= inflight.limit:
            return self.tell(inflight.refusal(), request)
        call = ToolCall(
            head.id, request, exchange.principal, uri=uri, spec=binding.spec, raw=raw, task=task, overseer=self
        )
        if head.params.request_state is not UNSET:
            request.era.open_rounds(request, call)
        if connection is not None:
            inflight.enter_connection(call, connection)
        inflight[call] = None
        if not inflight.ticking:
            inflight.tick_later(exchange.loop)
        try:
            output = await binding.invoke(call)
            if call.token is None or call.token.reason is None:
                if request.rounds is not None and request.rounds.pending:
                    return request.era.input_required(request, call)  # whatever the code made of it
                result = binding.encode(output, request)
                if len(result) > binding.max_result_bytes:
                    raise ResultTooLarge(len(result), binding.max_result_bytes)
                return result
            return self._stopped(call, task, request)
        except BaseException as error:
            if call.scope is not None:
                call.failure = error
            return self._failed(error, call, task, request)
        finally:
            if call.scope is not None or request.held is not None or request.questions is not None:
                self._wind_up(call, request)
            request.finished = True
            inflight.pop(call, None)
            if connection is not None or inflight.attentive:
                inflight.leave(call, connection)

    def _wind_up(self, call: ToolCall, request: Request) -> None:
        """Say what was held back, take back what was asked in vain, and finalise what was made for the call."""
        if request.held is not None:
            request.tell_held()
        for number, answered in (request.questions or {}).items():
            withdraw(request, number, answered)
        if call.scope is not None:
            self._inflight.finalise(call)

    def stopped(self, call: ToolCall) -> None:
        """Give the code of a stopped call a moment to end; then its caller is answered without it."""
        request = _request_of(call)
        if call.cancel_reason in _UNWANTED:
            request.finished = True
        request.exchange.loop.call_later(self._grace_seconds, self._abandon, call, request)

    def _abandon(self, call: ToolCall, request: Request) -> None:
        """Answer for code that does not end, and let it go on for nobody."""
        inflight = self._inflight
        if call not in inflight:
            return
        inflight.abandon(call, request.connection)
        words = (call.spec.kind, call.spec.name, call.cancel_reason)
        _log.warning("%s %s was stopped and goes on: %s", *words, extra={"axolotl_call": call})
        call.abandon()
        if call.scope is not None:
            inflight.finalise(call)
        request.finished = True
        request.exchange.settle(self._last_reply(call, request), call.task)

    def _last_reply(self, call: ToolCall, request: Request) -> bytes | None:
        assert request.head.id is not UNSET
        try:
            result = self._told_of_stop(call, request)
            return None if result is None else RESULT % (encode(request.head.id), result)
        except ProtocolError as error:
            return error_reply(error, request.head.id, request.era, request.exchange)

    def _failed(
        self, error: BaseException, call: ToolCall, task: asyncio.Task[object], request: Request
    ) -> bytes | None:
        if call.cancelled:
            return self._stopped(call, task, request)
        if isinstance(error, ProtocolError):
            return self.tell_protocol_error(error, request)
        if isinstance(error, asyncio.CancelledError) and task.cancelling():
            raise error
        if only_asks(error):
            try:
                return request.era.input_required(request, call)
            except Exception as problem:
                error = problem
        return self.tell(error if isinstance(error, ToolError) else hide(error, call), request)

    def _stopped(self, call: ToolCall, task: asyncio.Task[object], request: Request) -> bytes | None:
        """Answer a call that we cancelled, whether its code took notice or not."""
        task.uncancel()
        return None if call.abandoned else self._told_of_stop(call, request)

    def _told_of_stop(self, call: ToolCall, request: Request) -> bytes | None:
        if call.cancel_reason in _UNWANTED:
            if request.exchange.headers is not None and not request.era.revision.stateless:
                raise RequestCancelled  # over HTTP a client waits for a response, and comes back for one for ever
            return None
        return self.tell(describe_stop(call), request)


def _request_of(call: ToolCall) -> Request:
    request = call.caller
    assert isinstance(request, Request)
    return request


class ErrorFeatureMethod(FeatureMethod):
    """Answers failures with JSON-RPC errors."""

    def tell(self, error: ToolError, request: Request) -> bytes:
        """Raise what the caller may read."""
        if isinstance(error, InvalidArguments):
            raise InvalidParams(error.message) from None
        raise InternalError(error.message, data=error.meta) from None
