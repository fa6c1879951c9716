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
from typing import Protocol

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


class IWriter(Protocol):
    """A destination for bytes."""

    def write(self, data: bytes) -> object:
        """Send bytes, or buffer them until the client reads."""
        ...

    async def close(self) -> None:
        """Wait until everything is sent, as long as the client keeps reading."""
        ...


async def open_reader(descriptor: int, on_chunk: Callable[[bytes], object], on_end: Callable[[], object]) -> "_Valve":
    """Pass incoming bytes to `on_chunk`; call `on_end` when the client has closed the stream."""
    loop = asyncio.get_running_loop()
    if _is_pollable(descriptor):
        protocol = _Receiver(on_chunk, on_end)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, _Pipe(descriptor, loop))
        return _Valve(transport, descriptor=descriptor)
    return _Valve(None, _BlockingReader(descriptor, on_chunk, on_end))


async def open_writer(descriptor: int, on_pause: Callable[[bool], object], on_lost: Callable[[], object]) -> IWriter:
    """Open a descriptor for writing; `on_pause` gets whether the client reads too slowly, `on_lost` its end."""
    if not _is_pollable(descriptor):
        return _BlockingWriter(descriptor)
    loop = asyncio.get_running_loop()
    protocol = _FlowControl(on_pause, on_lost)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, _Pipe(descriptor, loop))
    return _PipeWriter(transport, protocol)


def _is_pollable(descriptor: int) -> bool:
    """Whether an event loop can wait for a descriptor: it can for pipes and sockets, not for files and terminals."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _is_hung_up(descriptor: int) -> bool:
    """Whether the other end of a pipe or socket is closed; there may be bytes that were not read."""
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))  # which only Linux has; POLLHUP is always reported
    return bool(poll.poll(0))


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


class _Valve:
    """Pauses reading while the client does not read.

    A paused stream does not report its end. So that a client that closes its end and reads nothing does not keep the
    server alive forever, the valve looks for the end from time to time, and lets the rest of the input through.
    """

    def __init__(
        self,
        transport: asyncio.ReadTransport | None,
        reader: "_BlockingReader | None" = None,
        *,
        descriptor: int = -1,
    ) -> None:
        self._transport = transport
        self._reader = reader
        self._descriptor = descriptor
        self._looking: asyncio.TimerHandle | None = None

    def hold(self, full: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._stop_looking()
        if full:
            self._transport.pause_reading()
            self._look_later()
        else:
            self._transport.resume_reading()

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(_TIMEOUT_SECONDS, self._look)

    def _look(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if _is_hung_up(self._descriptor):
            self._transport.resume_reading()
        else:
            self._look_later()

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    def close(self) -> None:
        self._stop_looking()
        if self._transport is not None:
            self._transport.close()
        if self._reader is not None:
            self._reader.close()


class _Receiver(asyncio.Protocol):
    def __init__(self, on_chunk: Callable[[bytes], object], on_end: Callable[[], object]) -> None:
        self.data_received = on_chunk  # type: ignore[assignment]
        self._on_end = on_end

    def eof_received(self) -> None:
        self._on_end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class _FlowControl(asyncio.BaseProtocol):
    def __init__(self, on_pause: Callable[[bool], object], on_lost: Callable[[], object]) -> None:
        self._on_pause = on_pause
        self._on_lost = on_lost
        self.closed = asyncio.Event()

    def pause_writing(self) -> None:
        self._on_pause(True)

    def resume_writing(self) -> None:
        self._on_pause(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self._on_lost()


class _PipeWriter:
    def __init__(self, transport: asyncio.WriteTransport, flow: _FlowControl) -> None:
        self._transport = transport
        self._flow = flow

    def write(self, data: bytes) -> None:
        if not self._flow.closed.is_set():
            self._transport.write(data)

    async def close(self) -> None:
        self._transport.close()
        left = -1
        while not self._flow.closed.is_set():
            before, left = left, self._transport.get_write_buffer_size()
            if left == before:
                _log.warning("%d bytes are lost: the client does not read the standard output", left)
                self._transport.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    await self._flow.closed.wait()


class _BlockingWriter:
    """Writes to files and terminals, which accept bytes immediately."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    async def close(self) -> None:
        os.close(self._descriptor)


class _BlockingReader:
    """Reads files and terminals in a daemon thread, because its last read cannot be interrupted."""

    def __init__(self, descriptor: int, on_chunk: Callable[[bytes], object], on_end: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_chunk = on_chunk
        self._on_end = on_end
        self._closed = False
        threading.Thread(target=self._pump, name="axolotl-stdin", daemon=True).start()

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
