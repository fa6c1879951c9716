"""stdio: one message a line, all replies of a loop tick in one write."""

import asyncio

from axolotl_server.backlog import Backlog, is_losable
from axolotl_server.handler import DefaultHandler
from axolotl_server.settings import ServerSettings
from axolotl_server.shutdown import StopSignal
from axolotl_server.transports.framing import LineCutter
from axolotl_server.transports.peer import StreamPeer
from axolotl_server.transports.pipes import IWriter, StandardStreams, open_reader, open_writer

__all__ = ["serve_stdio"]


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
            self._waiting.put(message, losable=is_losable(message))
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
    """Serve until the client closes its end or the process is told to stop; every request read is answered."""

    def hold_back(full: bool) -> None:
        valve.hold(full)
        outbox.hold(full)

    writer = await open_writer(streams.outgoing, hold_back, stop.set)
    outbox = _Outbox(writer)
    peer = StreamPeer(handler, outbox.put, settings.stdio.caller)
    cutter = LineCutter(settings.limits.max_message_bytes)

    def take(chunk: bytes) -> None:
        for line in cutter.feed(chunk):
            peer.receive(line)

    valve = await open_reader(streams.incoming, take, stop.set)
    await stop.wait()
    for line in cutter.finish():
        peer.receive(line)
    valve.close()
    await stop.unless_hastened(peer.close(settings.stdio.drain_seconds), otherwise=lambda: peer.close(0))
    outbox.hold(False)
    outbox.flush()
    await stop.unless_hastened(writer.close())
