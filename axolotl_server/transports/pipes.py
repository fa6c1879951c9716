"""Standard input and output, reserved for the protocol."""

import asyncio
import contextlib
import logging
import os
import select
import stat
import sys
import threading
from collections.abc import Callable
from typing import cast

import msgspec

_CHUNK = 256 * 1024
_TIMEOUT_SECONDS = 5.0
"""How long the client may read nothing at the end before the rest is dropped, or before its end is looked for."""

_log = logging.getLogger("axolotl")


class StandardStreams(msgspec.Struct, frozen=True):
    """The descriptors that the protocol uses."""

    incoming: int
    outgoing: int


def claim_standard_streams() -> StandardStreams:
    """Move stdin and stdout to private descriptors, before any user code runs.

    After that, `print`, C libraries and child processes write to stderr and read nothing.
    """
    streams = StandardStreams(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    return streams


async def open_reader(
    descriptor: int, on_chunk: Callable[[bytes], object], on_end: Callable[[], object]
) -> "PipeReader | BlockingReader":
    """Pass incoming bytes to `on_chunk`; call `on_end` when the client has closed the stream."""
    if not _is_pollable(descriptor):
        return BlockingReader(descriptor, on_chunk, on_end)
    loop, reader = asyncio.get_running_loop(), PipeReader(descriptor, on_chunk, on_end)
    await loop.connect_read_pipe(lambda: reader, _Pipe(descriptor, loop))
    return reader


async def open_writer(
    descriptor: int, on_pause: Callable[[bool], object], on_lost: Callable[[], object]
) -> "PipeWriter | BlockingWriter":
    """Open a descriptor for writing; `on_pause` gets whether the client reads too slowly, `on_lost` its end."""
    if not _is_pollable(descriptor):
        return BlockingWriter(descriptor)
    loop, writer = asyncio.get_running_loop(), PipeWriter(on_pause, on_lost)
    await loop.connect_write_pipe(lambda: writer, _Pipe(descriptor, loop))
    return writer


def _is_pollable(descriptor: int) -> bool:
    """Whether an event loop can wait for a descriptor: it can for pipes and sockets, not for files and terminals."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class _Pipe:
    """A descriptor that is closed once, whoever closes it.

    The loops of the standard library close a pipe through its object. uvloop closes the descriptor itself and then the
    object as well: a second `close` of that number would hit a file that another thread has opened in between.
    """

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor = descriptor
        self._is_ours = isinstance(loop, asyncio.BaseEventLoop)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._is_ours:
            self._is_ours = False
            os.close(self._descriptor)


class PipeReader(asyncio.Protocol):
    """Reads a pipe or a socket, unless the client does not read.

    A paused stream does not report its end. So that a client that closes its end and reads nothing does not keep the
    server alive forever, the reader looks for the end from time to time, and lets the rest of the input through.
    """

    _transport: asyncio.ReadTransport

    def __init__(self, descriptor: int, on_chunk: Callable[[bytes], object], on_end: Callable[[], object]) -> None:
        self.data_received = on_chunk  # type: ignore[assignment]
        self._on_end = on_end
        self._descriptor = descriptor
        self._looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def eof_received(self) -> None:
        self._on_end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()

    def hold(self, full: bool) -> None:
        """Read nothing while the client reads too slowly."""
        if self._transport.is_closing():
            return
        self._stop_looking()
        if full:
            self._transport.pause_reading()
            self._look_later()
        else:
            self._transport.resume_reading()

    def close(self) -> None:
        self._stop_looking()
        self._transport.close()

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(_TIMEOUT_SECONDS, self._look)

    def _look(self) -> None:
        if self._transport.is_closing():
            return
        poll = select.poll()
        poll.register(self._descriptor, getattr(select, "POLLRDHUP", 0))  # only on Linux; POLLHUP is always reported
        if poll.poll(0):
            self._transport.resume_reading()  # the other end is closed; there may be bytes that were not read
        else:
            self._look_later()

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()


class PipeWriter(asyncio.BaseProtocol):
    """Writes to a pipe or a socket."""

    _transport: asyncio.WriteTransport

    def __init__(self, on_pause: Callable[[bool], object], on_lost: Callable[[], object]) -> None:
        self._on_pause = on_pause
        self._on_lost = on_lost
        self._closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def pause_writing(self) -> None:
        self._on_pause(True)

    def resume_writing(self) -> None:
        self._on_pause(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self._on_lost()

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them until the client reads."""
        if not self._closed.is_set():
            self._transport.write(data)

    async def close(self) -> None:
        """Wait until everything is sent, as long as the client keeps reading."""
        self._transport.close()
        left = -1
        while not self._closed.is_set():
            before, left = left, self._transport.get_write_buffer_size()
            if left == before:
                _log.warning("%d bytes are lost: the client does not read the standard output", left)
                self._transport.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    await self._closed.wait()


class BlockingWriter:
    """Writes to files and terminals, which accept bytes immediately."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    async def close(self) -> None:
        os.close(self._descriptor)


class BlockingReader:
    """Reads files and terminals in a daemon thread, because its last read cannot be interrupted."""

    def __init__(self, descriptor: int, on_chunk: Callable[[bytes], object], on_end: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_chunk = on_chunk
        self._on_end = on_end
        self._closed = False
        threading.Thread(target=self._pump, name="axolotl-stdin", daemon=True).start()

    def hold(self, full: bool) -> None:
        """Do nothing: a read in a thread cannot be held back."""

    def close(self) -> None:
        self._closed = True

    def _pump(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed because the server has ended
            while chunk := self._read():
                self._loop.call_soon_threadsafe(self._take, chunk)
            self._loop.call_soon_threadsafe(self._on_end)

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # for example, the terminal was closed
            return b""

    def _take(self, chunk: bytes) -> None:
        if not self._closed:
            self._on_chunk(chunk)
