"""The handler of every message, and the one boundary between exceptions and the wire."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, InvalidParams, InvalidRequest, MethodNotFound, ProtocolError
from axolotl_core.layers import ITask
from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.json_limits import MAX_VALUES
from axolotl_core.protocol.messages import (
    Head,
    Irregular,
    diagnose,
    explain_shape,
    read_head,
    read_id,
    usable_id,
    without_nulls,
)
from axolotl_core.protocol.wire import error_message
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.protocol.connection import Connection, IExchange, IObserver, Stop
from axolotl_server.protocol.eras.era import Eras, IEra
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.replies import error_reply, frame, hide_internal
from axolotl_server.protocol.request import Request
from axolotl_server.protocol.request_control import RequestControl
from axolotl_server.protocol.subscriptions import Subscriptions


class BatchItem(IExchange):
    """A message of a batch: it has the surroundings of the batch and a reply of its own."""

    status = 200

    def __init__(self, exchange: IExchange) -> None:
        self._exchange = exchange
        self._early_reply: asyncio.Future[bytes | None] = exchange.loop.create_future()
        self.loop = exchange.loop
        self.principal: Principal = exchange.principal

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        return self._exchange.headers

    @property
    def share(self) -> Share | None:
        return self._exchange.share

    @property
    def client_address(self) -> str | None:
        return self._exchange.client_address

    def connection(self) -> Connection:
        return self._exchange.connection()

    def open_connection(self) -> Connection:
        return self._exchange.open_connection()

    def notify(self, message: bytes) -> bool:
        return self._exchange.notify(message)

    def watch(self, stop: Stop | None) -> None:
        self._exchange.watch(stop)

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        if not self._early_reply.done():
            self._early_reply.set_result(reply)

    async def reply(self, handling: Coroutine[Any, Any, bytes | None]) -> bytes | None:
        """Wait until the message is handled, or until there is an early reply."""
        task = self.loop.create_task(handling)
        try:
            await asyncio.wait((task, self._early_reply), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        return self._early_reply.result() if self._early_reply.done() else await task


_ACCEPTED: Final = 202
MAX_BATCH: Final = 100
"""How many messages a batch may have."""
MAX_BATCH_REPLY_BYTES: Final = 16 * 1024 * 1024
"""How large the reply to a batch may be, apart from errors; messages that are left when it is full do not run."""
BATCH_CONCURRENCY: Final = 8
"""How many messages of a batch run at the same time."""


class DefaultHandler:
    """Routes messages to the methods of their era, and turns exceptions into errors of the protocol.

    `make_handler` makes one for a container.
    """

    def __init__(
        self,
        eras: Eras,
        inflight: RunningCalls,
        subscriptions: Subscriptions,
        control: RequestControl,
        observers: Sequence[IObserver] = (),
    ) -> None:
        self._eras = eras
        self._observers = observers
        self.inflight = inflight
        self.subscriptions = subscriptions
        self.control = control

    async def handle(self, data: bytes, exchange: IExchange) -> bytes | None:
        """Handle a message and return the reply; None if there is none."""
        try:
            head = read_head(data, MAX_VALUES)
        except Irregular:
            return await self._handle_irregular(data, exchange)
        except ProtocolError as error:
            return error_reply(error, read_id(data), self._eras.default_handshake, exchange)
        if head.id is UNSET:
            await self._handle_notification(head, data, exchange)
            return None
        era = self._eras.default_handshake
        try:
            era, connection = self._eras.select(head, exchange)
            request = Request(head, data, era, exchange, connection)
            try:
                era.admit(request)
                method = era.methods.get(head.method)
                if method is None:
                    raise MethodNotFound(f"Method not found: {head.method}")
            except ProtocolError as error:
                self._report_refusal(request, error)
                raise
            result = await method(request)
            return None if result is None else frame(head.id, result)
        except ProtocolError as error:
            return error_reply(error, head.id, era, exchange)
        except Exception as error:
            return error_reply(hide_internal(error, head.method), head.id, era, exchange)

    def connect(self, connection: Connection) -> None:
        """Notify a connection of changes from now on."""
        if connection.opened_at is None:
            connection.opened_at = perf_counter()
        self.subscriptions.connect(connection)

    def disconnect(self, connection: Connection, reason: CancelReason = CancelReason.DISCONNECT) -> None:
        """Forget a connection, and stop everything that runs for it."""
        if connection.opened_at is not None:
            for observer in self._observers:
                observer.connection_closed(connection)
            connection.opened_at = None
        self.subscriptions.disconnect(connection)
        for running in tuple(connection.calls.values()):
            running.stop(reason)

    def era_of(self, revision: str) -> IEra:
        """Return the era of a revision that another process has negotiated."""
        return self._eras.negotiate(revision)

    def _report_refusal(self, request: Request, error: ProtocolError) -> None:
        """Report a request that reaches no method; the methods report all others."""
        name = request.head.method if request.head.method in request.era.methods else None
        for observer in self._observers:
            observer.request_begun(request, name)
            observer.request_answered(request, None, error)

    async def _handle_notification(self, head: Head, data: bytes, exchange: IExchange) -> None:
        """Act on a notification; a wrong one is ignored, because it cannot be answered."""
        exchange.status = _ACCEPTED
        try:
            era, connection = self._eras.select(head, exchange)
            act = era.notifications.get(head.method)
            if act is not None and connection is not None:
                await act(Request(head, data, era, exchange, connection))
        except ProtocolError as error:
            exchange.status = error.status or _ACCEPTED

    async def _handle_irregular(self, data: bytes, exchange: IExchange) -> bytes | None:
        """Handle JSON that is not a plain request: a batch, a response of the client, or a mistake."""
        request_id: RequestId | None = None
        try:
            message, problem = diagnose(data, MAX_VALUES)
            if isinstance(message, list) and problem is None:
                return await self._handle_batch(data, exchange)
            if not isinstance(message, dict):
                raise problem or InvalidRequest("Invalid request: a message must be a JSON object")
            if "method" not in message and ("result" in message or "error" in message):
                if problem is not None:
                    message = {"id": message.get("id"), "error": {"message": problem.message}}
                await self.control.receive_answer(message, data, exchange)
                exchange.status = _ACCEPTED
                return None
            if problem is None:
                problem = explain_shape(message)
                complete = without_nulls(data) if isinstance(problem, InvalidParams) else None
                if complete is not None:
                    return await self.handle(complete, exchange)
            if "id" not in message and isinstance(problem, InvalidParams):
                exchange.status = _ACCEPTED
                return None  # a notification is not answered, even if it is wrong
            request_id = usable_id(message)
            raise problem
        except ProtocolError as error:
            return error_reply(error, request_id, self._eras.default_handshake, exchange)

    async def _handle_batch(self, data: bytes, exchange: IExchange) -> bytes | None:
        """Handle the messages of a batch, a few at a time, if the revision of the connection has batches."""
        era = exchange.connection().era
        if era is None or not era.revision.batches:
            raise InvalidRequest("Invalid request: this protocol revision has no batches, send single messages")
        items = msgspec.json.decode(data, type=list[Raw])
        if not items:
            raise InvalidRequest("Invalid request: the batch is empty")
        if len(items) > MAX_BATCH:
            raise InvalidRequest(
                f"Invalid request: the batch has {len(items)} messages, but at most {MAX_BATCH} are allowed; send "
                "several batches"
            )
        replies: list[bytes | None] = [None] * len(items)
        waiting, room = iter(enumerate(map(bytes, items))), MAX_BATCH_REPLY_BYTES

        async def run() -> None:
            nonlocal room
            for place, item in waiting:
                request_id = None if room > 0 else read_id(item)
                reply = await self._handle_item(item, exchange) if request_id is None else None
                if request_id is not None or (reply is not None and len(reply) > room):
                    reply, room = _no_room(request_id or read_id(item), executed=request_id is None), 0
                replies[place] = reply
                room -= 0 if reply is None else len(reply)

        await asyncio.gather(*(run() for _ in range(min(len(items), BATCH_CONCURRENCY))))
        answered = [reply for reply in replies if reply is not None]
        exchange.status = 200 if answered else _ACCEPTED
        return b"[%b]" % b",".join(answered) if answered else None

    async def _handle_item(self, data: bytes, exchange: IExchange) -> bytes | None:
        if data.startswith(b"["):
            error = InvalidRequest("Invalid request: a message must be a JSON object")
            return error_reply(error, None, self._eras.default_handshake, exchange)
        item = BatchItem(exchange)
        return await item.reply(self.handle(data, item))


def _no_room(request_id: RequestId | None, *, executed: bool) -> bytes:
    """Make the error for a message whose reply does not fit into the reply to its batch."""
    done = "was executed, but its reply is dropped" if executed else "was not executed"
    error = InternalError(
        f"The message {done}: the reply to the batch would have more than {MAX_BATCH_REPLY_BYTES} bytes; send fewer "
        "messages in one batch",
        data={"reason": "batch_too_large", "executed": executed},
    )
    return error_message(request_id, error, error.code)
