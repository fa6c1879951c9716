"""Methods that run a feature."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from asyncio import current_task
from typing import Any

import msgspec
from msgspec import UNSET

from axolotl_core.errors import InternalError, InvalidArguments, InvalidParams, MethodNotFound, ProtocolError, ToolError
from axolotl_core.layers import CallState
from axolotl_core.protocol.result_keys import error_data
from axolotl_server.calls.binding import Binding
from axolotl_server.calls.running_call import RunningCall, RunningCalls
from axolotl_server.protocol.request import Request


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


class FeatureMethod(ABC):
    """A method of the protocol that runs a feature."""

    def __init__(self, calls: RunningCalls) -> None:
        self._calls = calls

    @abstractmethod
    def locate(self, request: Request) -> RequestTarget:
        """Find the feature that a request names, or raise InvalidParams if it names none.

        Nothing else in the request is looked at, because the principal may not be allowed to know the feature.
        """

    def target_of(self, request: Request) -> RequestTarget:
        """Return the feature that a request names; it is located once for all who ask."""
        if request.target is None:
            request.target = self.locate(request)
        return request.target

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
        target = request.target
        if target is None:
            target = request.target = self.locate(request)
        binding: Any = await self.checked(target, request) if target.needs_check else target.binding
        head, exchange = request.head, request.exchange
        task = current_task(exchange.loop)
        assert task is not None
        call = RunningCall(
            head.id,  # type: ignore[arg-type]  # a message without an ID reaches no method
            caller=request,
            principal=exchange.principal,
            uri=target.uri,
            spec=binding.spec,
            raw=target.raw,
            task=task,
            method=self,
            binding=binding,
            calls=self._calls,
        )
        if head.params.request_state is not UNSET:
            request.era.open_rounds(request, call)
        refusal = self._calls.enter(call)
        if refusal is not None:
            return self.reply_to_failure(refusal, request)
        cancelling = task.cancelling()
        try:
            try:
                output = await binding.invoke(call)
            except BaseException as error:
                if task.cancelling() > cancelling and call.state is CallState.RUNNING:
                    await _withdraw_cancellation(task, cancelling)
                return call.reply(error=error)
            if task.cancelling() > cancelling and call.state is CallState.RUNNING:
                await _withdraw_cancellation(task, cancelling)
            return call.reply(output)
        finally:
            call.end()


async def _withdraw_cancellation(task: asyncio.Task[object], before: int) -> None:
    """Withdraw a cancellation by the code of the call itself, so that the caller still gets its reply."""
    while task.cancelling() > before:
        task.uncancel()
    with contextlib.suppress(asyncio.CancelledError):  # before Python 3.13, a withdrawn cancellation is still delivered
        await asyncio.sleep(0)


class ErrorFeatureMethod(FeatureMethod):
    """A method that answers failures with JSON-RPC errors, because its results have no form for them."""

    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        if isinstance(error, InvalidArguments):
            raise InvalidParams(error.message) from None
        raise InternalError(error.message, data=error_data(error.meta)) from None
