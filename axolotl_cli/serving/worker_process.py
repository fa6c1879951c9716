"""A worker, as the supervisor sees it."""

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, Self, TypeAlias

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


_PATIENCE_SECONDS: Final = 60.0
"""How long a worker that never said what it needs may take to end."""


class WorkerProcess:
    """A process with an interpreter of its own, which serves the listening socket that it is given."""

    program: ClassVar[Sequence[str]] = ("-m", "axolotl_cli.serving.worker")
    """What the interpreter runs."""

    def __init__(self, number: int, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.number = number
        """Its own among those that live."""
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether it serves; False if it ended before."""
        self.gone = asyncio.ensure_future(process.wait())
        self.listener: socket.socket | None = None
        """What it took to listen at, where it was given nothing."""
        self.patience_seconds = _PATIENCE_SECONDS
        """How long it may take to end."""
        self.has_moved = False
        """Whether its settings name another address than the one it serves."""
        self._process = process
        self._ready_since: float | None = None
        self._gone_since: float | None = None
        self._channel = Channel(end, self._hear, self._leave)
        self.gone.add_done_callback(lambda _: self._leave())

    @classmethod
    async def start(cls, number: int, order: Mapping[str, Any], listener: socket.socket | None = None) -> Self:
        """Start one; without a socket it takes the address itself and hands it over.

        It inherits the `descriptors` that its order names.
        """
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), *([] if listener is None else [listener.fileno()])]
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *cls.program,
                *map(str, descriptors),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=[*descriptors, *order.get("descriptors", ())],
                process_group=0,  # the terminal's Ctrl-C is for the supervisor, which ends workers in order
            )
        worker = cls(number, process, ours)
        worker._channel.say({**order, "number": number})
        return worker

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def serves(self) -> bool:
        """Whether it takes calls."""
        return self._ready_since is not None and not self.gone.done()

    @property
    def served_seconds(self) -> float:
        """How long it has served."""
        return 0.0 if self._ready_since is None else (self._gone_since or time.monotonic()) - self._ready_since

    @property
    def code(self) -> int | None:
        """How it ended: its exit code, or the negative number of the signal that ended it."""
        return self._process.returncode

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self.code or 0
        if code >= 0:
            return f"with exit code {code}"
        with suppress(ValueError):
            return f"by {signal.Signals(-code).name}"
        return f"by signal {-code}"

    def retire(self) -> None:
        """Have it leave new connections to others, and end when its clients have gone there."""
        self._channel.say({"type": "retire"})

    def stop(self) -> None:
        """Have it end in order.

        It is told so, not signalled: who stops a server may signal all its processes, and twice means haste.
        """
        if self.serves:
            self._channel.say({"type": "stop"})
        else:
            self.terminate()

    def terminate(self) -> None:
        """Have it end; if it was told before, in haste."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _hear(self, message: Mapping[str, Any], handed: socket.socket | None) -> None:
        if message["type"] == "listening":
            self.listener = handed
        elif message["type"] == "ready" and not self.ready.done():
            self._ready_since = time.monotonic()
            self.patience_seconds, self.has_moved = message["patience_seconds"], message["moved"]
            self.ready.set_result(True)

    def _leave(self) -> None:
        self._channel.close()
        self._gone_since = self._gone_since or time.monotonic()
        if not self.ready.done():
            self.ready.set_result(False)
