"""Running the code of a feature for a caller: deadline, cancellation, questions and every way to fail end here."""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final

from msgspec import UNSET

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import ProtocolError, RequestCancelled, ResultTooLarge, ToolError
from axolotl_core.layer import ToolCall
from axolotl_core.protocol.wire import encode
from axolotl_core.question import only_asks
from axolotl_core.spec import FeatureSpec
from axolotl_server.binding import Binding
from axolotl_server.eras.asking import withdraw
from axolotl_server.failures import describe_stop, hide
from axolotl_server.inflight import InFlight
from axolotl_server.replies import RESULT, error_reply
from axolotl_server.request import Request

__all__ = ["Invocation"]

_UNWANTED: Final = (CancelReason.CLIENT, CancelReason.DISCONNECT)
"""Why a caller hears nothing more, not even an answer."""

_log = logging.getLogger("axolotl")


class Invocation(ABC):
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
