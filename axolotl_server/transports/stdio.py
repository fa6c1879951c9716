"""The stdio transport: one message per line, and all replies of one event-loop iteration in one write."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.execution.stop_signal import StopSignal
from axolotl_server.handler import DefaultHandler
from axolotl_server.protocol.flow_control import Backlog, is_droppable
from axolotl_server.settings.server import ServerSettings
from axolotl_server.transports.pipes import BlockingWriter, PipeWriter, StandardStreams, open_reader, open_writer
from axolotl_server.transports.stream_exchange import StreamExchange


class LineSplitter:
    """Splits chunks of any size into lines. A line beyond the limit is dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Sequence[bytes | None]:
        """Return the lines that a chunk completes, with None for each that was too long."""
        if not self._size and -1 < chunk.find(b"\n") == len(chunk) - 1 <= self._max_bytes:
            return (chunk[:-1],)
        *complete, rest = chunk.split(b"\n")
        lines = []
        for piece in complete:
            self._keep(piece)
            lines.append(self._take())
        if rest:
            self._keep(rest)
        return lines

    def finish(self) -> Sequence[bytes | None]:
        """Return the last line if the stream ended without a line break."""
        return (self._take(),) if self._size else ()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            self._parts.clear()
        else:
            self._parts.append(piece)

    def _take(self) -> bytes | None:
        line = None if self._size > self._max_bytes else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


DRAIN_SECONDS: Final = 5.0
"""How long running calls have to finish after the client has closed stdin."""
_URGENT_SECONDS: Final = 0.5

_log: Final = logging.getLogger("axolotl")


class _Inbox:
    """Splits the input into messages."""

    def __init__(self, exchange: StreamExchange, splitter: LineSplitter, stop: StopSignal) -> None:
        self._exchange = exchange
        self._splitter = splitter
        self._stop = stop
        self.open = True
        """False when the stream has ended, or its end is to be ignored."""

    def take(self, chunk: bytes) -> None:
        for line in self._splitter.feed(chunk):
            self._exchange.receive(line)

    def end(self) -> None:
        """Handle the end of the input, after all messages before it."""
        if self.open:
            self.open = False
            for line in self._splitter.finish():
                self._exchange.receive(line)
            asyncio.get_running_loop().call_soon(self._exchange.connection().close_input)
            self._stop.set()


class _Outbox:
    """Collects the lines of one event-loop iteration and writes them together.

    While the client does not read, messages wait in a bounded backlog.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._write = write
        self._lines: list[bytes] = []
        self._waiting: Backlog[bytes] = Backlog()
        self._full = False

    def hold(self, full: bool) -> None:
        self._full = full
        while not self._full and self._waiting:
            self.put(self._waiting.take())

    def put(self, message: bytes) -> None:
        if self._full:
            self._waiting.put(message, droppable_bytes=len(message) if is_droppable(message) else None)
            return
        if not self._lines:
            self._loop.call_soon(self.flush)
        self._lines.append(message)

    def flush(self) -> None:
        if self._lines:
            self._lines.append(b"")
            data = b"\n".join(self._lines)
            self._lines = []
            self._write(data)


async def serve_stdio(
    handler: DefaultHandler,
    settings: ServerSettings,
    streams: StandardStreams,
    stop: StopSignal,
    drain_seconds: float = DRAIN_SECONDS,
) -> None:
    """Serve until the client closes the input or a stop is requested; every request that was read is answered.

    After a stop signal, a client that is still connected may answer questions until all calls have ended; new calls are
    refused.
    """

    def hold_back(full: bool) -> None:
        valve.hold(full)
        outbox.hold(full)

    writer = await open_writer(streams.outgoing, hold_back, stop.set)
    outbox = _Outbox(writer.write)
    exchange = StreamExchange(handler, outbox.put, settings.stdio.caller)
    inbox = _Inbox(exchange, LineSplitter(settings.limits.max_message_bytes), stop)
    valve = await open_reader(streams.incoming, inbox.take, inbox.end)
    await stop.wait()
    if inbox.open:
        handler.inflight.refuse()
    if handler.inflight and stop.source is not None:  # after a signal only: clients usually just close the input
        _log.info(
            "stopping, requested by %s; running calls: %d, which get at most %g seconds",
            stop.source,
            len(handler.inflight),
            drain_seconds,
        )
    await stop.run_unless_urgent(exchange.drain(drain_seconds))
    inbox.open = False
    valve.close()
    handler.inflight.stop_all(CancelReason.SHUTDOWN)
    await exchange.close(0)
    outbox.hold(False)
    outbox.flush()
    await stop.run_unless_urgent(writer.close(), otherwise=lambda: _close_urgently(writer))


async def _close_urgently(writer: PipeWriter | BlockingWriter) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_URGENT_SECONDS):
            await writer.close()
