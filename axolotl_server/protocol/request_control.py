"""What clients do to requests that run: they cancel them, and answer their questions."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Declined, InternalError, ProtocolError
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.json_limits import MAX_VALUES
from axolotl_core.protocol.messages import diagnose, usable_id
from axolotl_server.protocol.connection import Connection, Forwarded, IExchange, IRunning
from axolotl_server.protocol.params import CancelledParams, read_params
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.access.guard import StreamGuard

_MAX_REASON_CHARACTERS: Final = 500


class RequestControl:
    """Lets clients cancel their requests and answer questions, in this process or in another one."""

    def __init__(self, guard: "StreamGuard | None") -> None:
        self.guard = guard
        """Decides who may resume a stream, and cancel or answer a call of others, where access is restricted."""

    async def cancelled(self, notification: Request) -> None:
        """Stop the request that a client names."""
        data, connection, principal = notification.data, notification.connection, notification.exchange.principal
        assert connection is not None
        if not await self._cancel(data, connection, principal):
            self._forward(data, connection, principal)

    async def receive_answer(self, message: dict[str, Any], data: bytes, exchange: IExchange) -> None:
        """Give an answer of a client to the code that waits for it."""
        connection, principal = exchange.connection(), exchange.principal
        if not await self._deliver_answer(message, connection, principal):
            self._forward(data, connection, principal)

    async def receive_forwarded(self, data: bytes, connection: Connection, principal: Principal | None) -> None:
        """Act on a message that another process has received: a cancellation, or an answer to a question.

        Where access is restricted, a message without a principal is ignored.
        """
        with suppress(ProtocolError):
            message = diagnose(data, MAX_VALUES).message
            if isinstance(message, dict) and "method" not in message:
                await self._deliver_answer(message, connection, principal)
            else:
                await self._cancel(data, connection, principal)

    def _forward(self, data: bytes, connection: Connection, principal: Principal) -> None:
        """Let the other processes act on a message, or raise InternalError if its sender cannot be forwarded."""
        if connection.forward is None:
            return
        try:
            sender = b"" if self.guard is None else msgspec.msgpack.encode(principal)
        except TypeError as error:
            raise InternalError(f"The message cannot be forwarded: {error}; claims must be JSON") from None
        connection.forward(Forwarded(data, sender))

    async def _cancel(self, data: bytes, connection: Connection, principal: Principal | None) -> bool:
        """Stop the request that a cancellation names, or return False if none has that ID.

        From a principal that may not use its feature, the cancellation is ignored.
        """
        request_id = read_params(data, CancelledParams).request_id
        running = connection.calls.get(request_id)
        if running is None:
            return False
        if await self._may_control(running, principal) and connection.calls.get(request_id) is running:
            running.stop(CancelReason.CLIENT)
        return True

    async def _deliver_answer(
        self, message: dict[str, Any], connection: Connection, principal: Principal | None
    ) -> bool:
        """Give an answer to the code that waits for it, or return False if no code does.

        From a principal that may not use the feature that asks, the answer is ignored.
        """
        request_id = usable_id(message)
        answered = None if request_id is None else connection.pending_answers.get(request_id)
        if request_id is None or answered is None or answered.done():
            return False
        if not await self._may_control(connection.waiting_calls.get(request_id), principal) or answered.done():
            return True
        if "error" not in message:
            answered.set_result(message["result"])
            return True
        error = message["error"]
        text = error.get("message") if isinstance(error, dict) else None
        reason = f": {text[:_MAX_REASON_CHARACTERS]}" if isinstance(text, str) else ""
        answered.set_exception(Declined("refuse", f"The client refused to answer{reason}"))
        return True

    async def _may_control(self, running: IRunning | None, principal: Principal | None) -> bool:
        if self.guard is None:
            return True
        return running is not None and principal is not None and await self.guard.may_control(running, principal)
