"""One message of a batch."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from axolotl_core.layer import ITask
from axolotl_core.protocol.identity import Principal
from axolotl_server.peer import Connection, IExchange, IStoppable

__all__ = ["BatchItem"]


class BatchItem:
    """The surroundings of a message of a batch: those of the batch, but an answer of its own."""

    status = 200

    def __init__(self, exchange: IExchange) -> None:
        self._exchange = exchange
        self._settled: asyncio.Future[bytes | None] = exchange.loop.create_future()
        self.loop = exchange.loop
        self.principal: Principal = exchange.principal

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """The headers of the batch."""
        return self._exchange.headers

    def connection(self) -> Connection:
        """Give the connection of the batch."""
        return self._exchange.connection()

    def open_connection(self) -> Connection:
        """Begin a handshake as the batch would."""
        return self._exchange.open_connection()

    def notify(self, message: bytes) -> bool:
        """Speak ahead of the batch's reply."""
        return self._exchange.notify(message)

    def watch(self, running: IStoppable) -> None:
        """Stop what runs when the sender of the batch goes away."""
        self._exchange.watch(running)

    def hang_up(self) -> None:
        """Do nothing: other messages of the batch are still to be answered."""

    def demand(self, scopes: Iterable[str]) -> None:
        """Demand nothing: the batch has one status for all of its messages."""

    def settle(self, reply: bytes | None, running: ITask) -> None:
        """Let the batch go on with this reply."""
        if not self._settled.done():
            self._settled.set_result(reply)

    async def reply(self, handling: Coroutine[Any, Any, bytes | None]) -> bytes | None:
        """Wait for the message to be handled, or for its reply to be settled before that."""
        task = self.loop.create_task(handling)
        try:
            await asyncio.wait((task, self._settled), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        return self._settled.result() if self._settled.done() else await task
