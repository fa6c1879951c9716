"""Running the code of a feature for a caller: deadline, cancellation, questions and every way to fail end here."""

import asyncio
from abc import ABC, abstractmethod

from msgspec import UNSET

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InputRequired, ProtocolError, RequestCancelled, ToolError
from axolotl_core.layer import ToolCall
from axolotl_core.spec import FeatureSpec
from axolotl_server.binding import Binding
from axolotl_server.eras.asking import withdraw
from axolotl_server.failures import describe_stop, hide
from axolotl_server.inflight import InFlight
from axolotl_server.request import Request

__all__ = ["Invocation"]


class Invocation(ABC):
    """A method of the protocol that runs a tool, a prompt or a resource."""

    def __init__(self, inflight: InFlight) -> None:
        self._inflight = inflight

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
        call = ToolCall(head.id, request, exchange.principal, uri=uri, spec=binding.spec, raw=raw, task=task)
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
                return binding.encode(output, request)
            return self._stopped(call, task, request)
        except BaseException as error:
            return self._failed(error, call, task, request)
        finally:
            if request.held is not None or request.questions is not None:
                _wind_up(request)
            request.finished = True
            del inflight[call]
            if connection is not None or inflight.attentive:
                inflight.leave(call, connection)

    def _failed(
        self, error: BaseException, call: ToolCall, task: asyncio.Task[object], request: Request
    ) -> bytes | None:
        if call.cancelled:
            return self._stopped(call, task, request)
        if isinstance(error, ProtocolError):
            return self.tell_protocol_error(error, request)
        if isinstance(error, asyncio.CancelledError) and task.cancelling():
            raise error
        if _only_asks(error):
            try:
                return request.era.input_required(request, call)
            except Exception as problem:
                error = problem
        return self.tell(error if isinstance(error, ToolError) else hide(error, call), request)

    def _stopped(self, call: ToolCall, task: asyncio.Task[object], request: Request) -> bytes | None:
        """Answer a call that we cancelled, whether its code took notice or not."""
        task.uncancel()
        reason = call.cancel_reason
        if reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
            if request.exchange.headers is not None and not request.era.revision.stateless:
                raise RequestCancelled  # over HTTP a client waits for a response, and comes back for one for ever
            return None
        return self.tell(describe_stop(call), request)


def _wind_up(request: Request) -> None:
    """Say what was held back, and take back what was asked and not answered."""
    request.tell_held()
    for number, answered in (request.questions or {}).items():
        withdraw(request, number, answered)


def _only_asks(error: BaseException) -> bool:
    """Tell whether code was left for want of answers alone, also by several questions of a task group."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_only_asks, error.exceptions))
    return isinstance(error, InputRequired)
