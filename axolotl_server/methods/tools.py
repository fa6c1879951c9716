"""`tools/list` and `tools/call`."""

import asyncio
from typing import Literal

from msgspec import UNSET

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidArguments, InvalidParams, ProtocolError, ToolError
from axolotl_core.layer import ToolCall
from axolotl_core.spec import ToolSpec
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
        head, exchange = request.head, request.exchange
        if head.params.name is UNSET or head.id is UNSET:
            raise InvalidParams('Invalid params: tools/call needs "name", the name of a tool')
        binding = self._catalogue.by_name[head.params.name]
        raw = bytes(head.params.arguments)
        if raw[0] != _OPENING_BRACE or binding.spec.header_parameters:
            self._check_arguments(binding.spec, raw, request)
        task = asyncio.current_task(exchange.loop)
        assert task is not None
        inflight, connection = self._inflight, request.connection
        if len(inflight) >= inflight.limit:
            refused = inflight.refusal()
            return encode_error(refused.message, refused.meta, request.era)
        call = ToolCall(head.id, request, exchange.principal, spec=binding.spec, raw=raw, task=task)
        if connection is not None:
            inflight.enter_connection(call, connection)
        inflight[call] = None
        if not inflight.ticking:
            inflight.tick_later(exchange.loop)
        try:
            output = await binding.invoke(call)
            if call.token is None or call.token.reason is None:
                return binding.encode(output, request.era)
            return self._stopped(call, task, request)
        except BaseException as error:
            return self._failed(error, call, task, request)
        finally:
            request.finished = True
            del inflight[call]
            if connection is not None or inflight.attentive:
                inflight.leave(call, connection)

    def _check_arguments(self, spec: ToolSpec, raw: bytes, request: Request) -> None:
        if raw[0] != _OPENING_BRACE:
            raise InvalidParams('Invalid params: "arguments" must be an object')
        headers = request.exchange.headers
        if headers is not None and request.era.revision.stateless:
            check_parameters(headers, spec.header_parameters, raw)

    def _failed(
        self, error: BaseException, call: ToolCall, task: asyncio.Task[object], request: Request
    ) -> bytes | None:
        if call.cancelled:
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
        reason = call.cancel_reason
        if reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
            return None
        told = describe_stop(call)
        return encode_error(told.message, told.meta, request.era)

    def _as_result(self, request: Request) -> bool:
        if self._invalid_arguments == "by_revision":
            return request.era.revision.argument_errors_as_results
        return self._invalid_arguments == "result"
