"""How a supervisor and its workers speak to each other: in lines of JSON, and with a socket that changes hands."""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

__all__ = ["Channel", "Hear"]

Hear: TypeAlias = Callable[[Mapping[str, Any], socket.socket | None], object]
"""Takes a message, and the socket that came along with it."""

_PIECE_BYTES: Final = 65536


class Channel:
    """One end of a pair of connected sockets, in the running loop."""

    def __init__(self, end: socket.socket, hear: Hear, closed: Callable[[], object]) -> None:
        self._end = end
        self._hear = hear
        self._closed = closed
        self._rest = b""
        self._handed: list[int] = []
        self._loop = asyncio.get_running_loop()
        end.setblocking(False)
        self._loop.add_reader(end, self._read)

    def say(self, message: Mapping[str, Any], handed: socket.socket | None = None) -> None:
        """Send a message; a process that has gone hears nothing."""
        data = json.dumps(message).encode() + b"\n"
        with suppress(OSError):
            if handed is None:
                self._end.sendall(data)
            else:
                socket.send_fds(self._end, [data], [handed.fileno()])

    def close(self) -> None:
        """Say and hear nothing more."""
        if self._end.fileno() >= 0:
            self._loop.remove_reader(self._end)
            self._end.close()

    def _read(self) -> None:
        try:
            data, handed, _, _ = socket.recv_fds(self._end, _PIECE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            data, handed = b"", []
        self._handed += handed
        if not data:
            self.close()
            self._closed()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            handed_now = socket.socket(fileno=self._handed.pop(0)) if self._handed else None
            self._hear(json.loads(line), handed_now)
