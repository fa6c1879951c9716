"""A client of stdio servers on raw pipes."""

import os
import select
import threading
import time
from collections.abc import Sequence
from typing import IO

from benchmarks import wire
from benchmarks.errors import BenchmarkError
from benchmarks.processes import Process

_READ_BYTES = 1 << 20
_REPLY_SECONDS = 120.0


class StdioClient:
    """A client of one server process."""

    def __init__(self, process: Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise BenchmarkError("the server has no pipes")
        self._stdin: IO[bytes] = process.stdin
        self._stdout: IO[bytes] = process.stdout
        self._poll = select.poll()
        self._poll.register(self._stdout.fileno(), select.POLLIN | select.POLLHUP)

    def initialize(self) -> None:
        """Perform the handshake.

        Raises BenchmarkError if the server refuses or is gone.
        """
        self._write(wire.stdio_handshake())
        if b'"protocolVersion"' not in self._read_lines(1):
            raise BenchmarkError("the server refused the handshake")
        self._write(wire.stdio_initialized())

    def round_trip(self, request: bytes) -> float:
        """Send one call and return the seconds until its reply."""
        begin = time.perf_counter()
        self._write(request)
        reply = self._read_lines(1)
        elapsed = time.perf_counter() - begin
        self._check(reply, 1)
        return elapsed

    def pipeline(self, requests: Sequence[bytes]) -> float:
        """Send all calls at once and return the seconds until the last reply."""
        writer = threading.Thread(target=self._write, args=(b"".join(requests),), daemon=True)
        begin = time.perf_counter()
        writer.start()
        replies = self._read_lines(len(requests))
        elapsed = time.perf_counter() - begin
        writer.join()
        self._check(replies, len(requests))
        return elapsed

    def _check(self, replies: bytes, count: int) -> None:
        answered = replies.count(wire.ANSWER)
        if answered != count:
            raise BenchmarkError(f"{answered} of {count} calls answered: {replies[:200].decode()}")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._stdin.fileno(), view) :]
        except BrokenPipeError:
            return  # the reader sees the end of the stream and reports it

    def _read_lines(self, count: int) -> bytes:
        chunks: list[bytes] = []
        while count > 0:
            if not self._poll.poll(_REPLY_SECONDS * 1000):
                raise BenchmarkError("no reply in time")
            chunk = os.read(self._stdout.fileno(), _READ_BYTES)
            if not chunk:
                raise BenchmarkError("the server closed its output")
            count -= chunk.count(b"\n")
            chunks.append(chunk)
        return b"".join(chunks)
