"""stdio: one message a line, all replies of a loop tick in one write."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.handler import DefaultHandler
from axolotl_server.lifecycle.stop_signal import StopSignal
from axolotl_server.messages.flow_control import Backlog, is_droppable
from axolotl_server.settings.server import ServerSettings
from axolotl_server.transports.pipes import IWriter, StandardStreams, open_reader, open_writer
from axolotl_server.transports.stream_exchange import StreamExchange


class LineCutter:
    """Finds complete lines in chunks of any size; a line beyond the limit is dropped up to its end."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._too_long = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Give the lines that a chunk completes, None for each that was too long."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._keep(piece)
            yield self._take()
        if rest:
            self._keep(rest)

    def finish(self) -> Iterator[bytes | None]:
        """Give the last line if the stream ended without a line break."""
        if self._parts or self._too_long:
            yield self._take()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            self._too_long = True
            self._parts.clear()
        elif not self._too_long:
            self._parts.append(piece)

    def _take(self) -> bytes | None:
        line = None if self._too_long else b"".join(self._parts)
        self._parts.clear()
        self._size, self._too_long = 0, False
        return line


_HASTY_SECONDS: Final = 0.5

_log: Final = logging.getLogger("axolotl")


class _Inbox:
    """Cuts what arrives into messages, up to the end of the stream or the moment when nothing more is heard."""

    def __init__(self, peer: StreamExchange, cutter: LineCutter, stop: StopSignal) -> None:
        self._loop = asyncio.get_running_loop()
        self._peer = peer
        self._cutter = cutter
        self._stop = stop
        self.open = True

    def take(self, chunk: bytes) -> None:
        for line in self._cutter.feed(chunk):
            self._peer.receive(line)

    def end(self) -> None:
        """Learn that the client has closed its end; what it said before is heard before that."""
        if self.open:
            self.open = False
            for line in self._cutter.finish():
                self._peer.receive(line)
            self._loop.call_soon(self._peer.close_input)
            self._stop.set()

    def close(self) -> None:
        """Take the end of the stream for nothing."""
        self.open = False


class _Outbox:
    """Collects the lines of one turn of the event loop and writes them together.

    While the client does not read, what it may lose waits in a backlog that holds so much and no more.
    """

    def __init__(self, writer: IWriter) -> None:
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self._lines: list[bytes] = []
        self._waiting: Backlog[bytes] = Backlog()
        self._full = False

    def hold(self, full: bool) -> None:
        self._full = full
        while not self._full and self._waiting:
            self.put(self._waiting.take())

    def put(self, message: bytes) -> None:
        if self._full:
            self._waiting.put(message, droppable=is_droppable(message))
            return
        if not self._lines:
            self._loop.call_soon(self.flush)
        self._lines.append(message)

    def flush(self) -> None:
        if self._lines:
            self._lines.append(b"")
            data = b"\n".join(self._lines)
            self._lines = []
            self._writer.write(data)


async def serve_stdio(
    handler: DefaultHandler, settings: ServerSettings, streams: StandardStreams, stop: StopSignal
) -> None:
    """Serve until the client closes its end or the process is told to stop; every request read is answered.

    A client that is still there when a signal comes may answer questions until all calls have ended; new calls are
    refused.
    """

    def hold_back(full: bool) -> None:
        valve.hold(full)
        outbox.hold(full)

    writer = await open_writer(streams.outgoing, hold_back, stop.set)
    outbox = _Outbox(writer)
    peer = StreamExchange(handler, outbox.put, settings.stdio.caller)
    inbox = _Inbox(peer, LineCutter(settings.limits.max_message_bytes), stop)
    valve = await open_reader(streams.incoming, inbox.take, inbox.end)
    await stop.wait()
    if inbox.open:
        handler.inflight.refuse()
    await _drain(handler, peer, settings.stdio.drain_seconds, stop)
    inbox.close()
    valve.close()
    handler.inflight.stop_all(CancelReason.SHUTDOWN)
    await peer.close(0)
    outbox.hold(False)
    outbox.flush()
    await stop.run_unless_urgent(writer.close(), otherwise=lambda: _hastily(writer))


async def _drain(handler: DefaultHandler, peer: StreamExchange, seconds: float, stop: StopSignal) -> None:
    """Let running calls end; where the client just closed its end, as clients do, there is little to say."""
    if handler.inflight and stop.source is not None:
        running = len(handler.inflight)
        _log.info("told to stop by %s; still running: %d, for at most %g seconds", stop.source, running, seconds)
    await stop.run_unless_urgent(peer.drain(seconds))


async def _hastily(writer: IWriter) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_HASTY_SECONDS):
            await writer.close()
