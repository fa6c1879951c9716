"""A connection over a stream of messages: stdio or SSE."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from copy import copy
from typing import Self

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest
from axolotl_core.layers import ITask
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.wire import error_message
from axolotl_server.handler import DefaultHandler
from axolotl_server.protocol.connection import Connection, IExchange, start_task
from axolotl_server.protocol.fair_share import Share

_STOP_GRACE_SECONDS = 1.0


class StreamExchange(IExchange):
    """A connection over a stream. Each message runs in its own task, and replies are sent in any order."""

    headers: Mapping[bytes, bytes] | None = None
    share: Share | None = None
    client_address: str | None = None
    status = 200

    def __init__(
        self,
        handler: DefaultHandler,
        write: Callable[[bytes], object],
        principal: Principal = ANONYMOUS,
        share: Share | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.principal = principal
        self.share = share
        self._handler = handler
        self._write = write
        self._connection = Connection(write)
        self._tasks: set[ITask] = set()
        self._idle = asyncio.Event()
        handler.connect(self._connection)

    def receive(self, message: bytes | None) -> asyncio.Task[None] | None:
        """Handle a message; None stands for one that was too long.

        Returns the task that handles it, unless nothing is left to do.
        """
        if message is None:
            error = InvalidRequest("Invalid request: the message is too large")
            self._write(error_message(None, error, error.code))
        elif message and not message.isspace():
            task = start_task(self._answer(message), self.loop)
            if not task.done():
                self._tasks.add(task)
                return task
        return None

    def on_behalf_of(self, principal: Principal) -> Self:
        """Return the same connection for a message with a token of its own, which no other message can replace."""
        if principal is self.principal:
            return self
        exchange = copy(self)
        exchange.principal = principal
        return exchange

    def connection(self) -> Connection:
        """Return the connection, which exists from the start."""
        return self._connection

    def open_connection(self) -> Connection:
        """Begin the handshake, once."""
        if self._connection.era is not None:
            raise InvalidRequest("Invalid request: the connection is already initialized")
        return self._connection

    def notify(self, message: bytes) -> bool:
        """Write a message immediately, because all messages share the stream."""
        self._write(message)
        return True

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """Write the reply without waiting for the task of the message."""
        self._forget(running)
        if reply is not None:
            self._write(reply)

    async def drain(self, seconds: float) -> None:
        """End subscriptions, and let running calls finish."""
        self._handler.subscriptions.end(self._connection)
        await self._idle_within(seconds)

    async def close(self, drain_seconds: float) -> None:
        """Let running calls finish, stop those that take too long, and answer all of them."""
        await self.drain(drain_seconds)
        self._handler.disconnect(self._connection, CancelReason.SHUTDOWN)
        await self._idle_within(_STOP_GRACE_SECONDS)

    def _forget(self, task: ITask) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._idle.set()

    async def _idle_within(self, seconds: float) -> None:
        """Wait until every message is answered, within a time limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._tasks:
                    self._idle.clear()
                    await self._idle.wait()

    async def _answer(self, message: bytes) -> None:
        try:
            reply = await self._handler.handle(message, self)
            if reply is not None:
                self._write(reply)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._forget(task)
