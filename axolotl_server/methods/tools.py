"""`tools/list` and `tools/call`."""

import asyncio
from typing import Literal

from msgspec import UNSET

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidArguments, InvalidParams, ProtocolError, ToolError
from axolotl_core.layer import ToolCall
from axolotl_server.binding import ToolBinding
from axolotl_server.catalogue import Catalogue
from axolotl_server.eras.mirrored import check_parameters
from axolotl_server.failures import describe_stop, hide
from axolotl_server.inflight import InFlight
from axolotl_server.methods.params import ListParams, read_params
from axolotl_server.peer import Request
from axolotl_server.results import encode_error

__all__ = ["ToolMethods"]

_OPENING_BRACE = ord("{")


class ToolMethods:
    """Lists tools and orchestrates their calls: deadline, cancellation and every way to fail end here."""

    def __init__(
        self,
        catalogue: Catalogue,
        inflight: InFlight,
        invalid_arguments: Literal["by_revision", "error", "result"],
    ) -> None:
        self._catalogue = catalogue
        self._inflight = inflight
        self._invalid_arguments = invalid_arguments

    async def list(self, request: Request) -> bytes:
        """Give a page of the list."""
        return self._catalogue.page(request.era, read_params(request.data, ListParams).cursor)

    async def call(self, request: Request) -> bytes | None:
        """Run a tool; the answer is None if the caller no longer wants one."""
        binding, raw = self._target(request)
        exchange = request.exchange
        task = asyncio.current_task(exchange.loop)
        assert task is not None
        assert request.head.id is not UNSET
        call = ToolCall(request.head.id, request, exchange.principal, spec=binding.spec, raw=raw, task=task)
        try:
            self._inflight.enter(call, request)
        except ToolError as refused:
            return encode_error(refused.message, refused.meta, request.era)
        try:
            output = await binding.invoke(call)
            if call.cancellation.reason is None:
                return binding.encode(output, request.era)
            return self._stopped(call, task, request)
        except BaseException as error:
            return self._failed(error, call, task, request)
        finally:
            request.finished = True
            self._inflight.leave(call, request)

    def _target(self, request: Request) -> tuple[ToolBinding, bytes]:
        params = request.head.params
        if params.name is UNSET:
            raise InvalidParams('Invalid params: tools/call needs "name", the name of a tool')
        binding = self._catalogue.find(params.name)
        raw = bytes(params.arguments)
        if raw[0] != _OPENING_BRACE:
            raise InvalidParams('Invalid params: "arguments" must be an object')
        headers = request.exchange.headers
        if binding.spec.header_parameters and headers is not None and request.era.revision.stateless:
            check_parameters(headers, binding.spec.header_parameters, raw)
        return binding, raw

    def _failed(
        self, error: BaseException, call: ToolCall, task: asyncio.Task[object], request: Request
    ) -> bytes | None:
        if call.cancellation.reason is not None:
            return self._stopped(call, task, request)
        if isinstance(error, ProtocolError):
            raise error
        if isinstance(error, asyncio.CancelledError) and task.cancelling():
            raise error
        if isinstance(error, InvalidArguments) and not self._as_result(request):
            raise InvalidParams(error.message) from None
        told = error if isinstance(error, ToolError) else hide(error, call)
        return encode_error(told.message, told.meta, request.era)

    def _stopped(self, call: ToolCall, task: asyncio.Task[object], request: Request) -> bytes | None:
        """Answer a call that we cancelled, whether its tool took notice or not."""
        task.uncancel()
        reason = call.cancellation.reason
        if reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
            return None
        told = describe_stop(call)
        return encode_error(told.message, told.meta, request.era)

    def _as_result(self, request: Request) -> bool:
        if self._invalid_arguments == "by_revision":
            return request.era.revision.argument_errors_as_results
        return self._invalid_arguments == "result"
