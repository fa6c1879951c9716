"""A worker process as its supervisor sees it, and the messages between them."""

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self, TypeAlias

Receive: TypeAlias = Callable[[Mapping[str, Any], socket.socket | None], object]
"""Takes a message, and the socket that was sent with it."""

_CHUNK_BYTES: Final = 65536
_ORDER_BYTES: Final = 2**20
_SEND_SECONDS: Final = 1.0
MARGIN_SECONDS: Final = 5.0
"""How much longer than it may take a worker that shuts down is waited for."""
_SHUTDOWN_SECONDS: Final = 60.0
"""How long a worker that never became ready may take to shut down."""


class Channel:
    """One end of a socket pair that carries messages, in the running event loop."""

    def __init__(self, end: socket.socket, receive: Receive, on_close: Callable[[], object]) -> None:
        self._end = end
        self._receive = receive
        self._on_close = on_close
        self._buffer = b""
        self._descriptors: list[int] = []
        self._loop = asyncio.get_running_loop()
        end.settimeout(_SEND_SECONDS)
        self._loop.add_reader(end, self._read)

    def send(self, message: Mapping[str, Any], attached: socket.socket | None = None) -> None:
        """Send a message; nothing happens if the other process has ended."""
        data = json.dumps(message).encode() + b"\n"
        with suppress(OSError):
            if attached is None:
                self._end.sendall(data)
            else:
                socket.send_fds(self._end, [data], [attached.fileno()])

    def close(self) -> None:
        """Stop sending and receiving."""
        if self._end.fileno() >= 0:
            self._loop.remove_reader(self._end)
            self._end.close()

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._end, _CHUNK_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors += descriptors
        if not data:
            self.close()
            self._on_close()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            attached = socket.socket(fileno=self._descriptors.pop(0)) if self._descriptors else None
            self._receive(json.loads(line), attached)


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """The first message to a worker: what to serve, and how."""

    target: str | None
    toolsets: Sequence[str]
    flags: Mapping[str, Any]
    files: Sequence[Any]
    """The options of the command line that name files, and the profile, as text."""
    is_development: bool = False
    """Whether to print calls, to describe the features, and to let newer code take over at once."""
    state_key: str = ""
    """The key with which all workers seal the state of questions, unless the settings have keys."""
    sessions_directory: str | None = None
    """Where all workers share sessions, unless the settings name a Redis or a directory."""
    number: int = 0
    """The lowest number that no other running worker has; at most twice the number of workers."""
    principal: Mapping[str, Any] | None = None
    """The principal of all requests in development, if the command line names one."""
    is_locked: bool = False
    """Whether the features must be those of the lock file."""

    @classmethod
    def receive(cls, end: socket.socket) -> Self:
        """Read the order from the channel, which carries nothing else before the worker is ready."""
        data = b""
        while not data.endswith(b"\n") and len(data) < _ORDER_BYTES:
            chunk = end.recv(_ORDER_BYTES)
            if not chunk:
                raise SystemExit(0)
            data += chunk
        return cls(**json.loads(data))


class WorkerProcess:
    """A process with its own interpreter, which serves the listening socket that it is given."""

    def __init__(self, number: int, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.number = number
        self.pid = process.pid
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Done when it serves (True), or ended before it did (False)."""
        self.gone = asyncio.ensure_future(process.wait())
        self.handed_over = asyncio.Event()
        """Set when new requests no longer reach it."""
        self.is_retiring = False
        """Whether another worker has replaced it, and it ends when its calls do."""
        self.listener: socket.socket | None = None
        """The socket that it opened, if it was not given one."""
        self.description: Mapping[str, Any] = {}
        """The content of its `ready` message."""
        self.problem = "The process ended before it was ready to serve"
        """Why it does not serve, if it does not."""
        self.is_explained = False
        """Whether it has reported the problem itself."""
        self.is_hopeless = False
        """Whether other code would not serve either."""
        self.has_answered = False
        """Whether it has answered the last ping."""
        self._process = process
        self._ready_at: float | None = None
        self._gone_at: float | None = None
        self._channel = Channel(end, self._receive, self._close)
        self.gone.add_done_callback(lambda _: self._close())

    @classmethod
    async def start(cls, number: int, order: WorkerOrder, listener: socket.socket | None = None) -> Self:
        """Start a worker; without a socket it opens one and sends it back."""
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), *([] if listener is None else [listener.fileno()])]
        # A file that changes twice within a second would leave bytecode of its first state: development writes none.
        options = ["-B"] if order.is_development else []
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *options,
                "-P",  # the worker imports nothing from the current directory before it loads the target
                "-m",
                "axolotl_cli.serving.worker",
                *map(str, descriptors),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=descriptors,
                process_group=0,  # Ctrl-C in the terminal is for the supervisor, which shuts workers down gracefully
            )
        worker = cls(number, process, ours)
        worker._channel.send(asdict(replace(order, number=number)))
        return worker

    @property
    def serves(self) -> bool:
        return self._ready_at is not None and not self.gone.done()

    @property
    def served_seconds(self) -> float:
        return 0.0 if self._ready_at is None else (self._gone_at or time.monotonic()) - self._ready_at

    @property
    def shutdown_seconds(self) -> float:
        """How long it may take to shut down."""
        return float(self.description.get("shutdown_seconds", _SHUTDOWN_SECONDS))

    @property
    def timeout_seconds(self) -> float | None:
        """How long it may leave pings unanswered; None for any time."""
        return self.description.get("timeout_seconds")

    @property
    def code(self) -> int | None:
        """Its exit code, or the negative number of the signal that ended it."""
        return self._process.returncode

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self.code or 0
        if code >= 0:
            return f"exited with code {code}"
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"

    def ping(self) -> None:
        """Ask for a sign of life from its event loop."""
        self.has_answered = False
        self._channel.send({"type": "ping"})

    def show_problem(self, problem: str) -> None:
        """Show on its console that newer code does not start."""
        self._channel.send({"type": "problem", "problem": problem})

    def retire(self) -> None:
        """Leave new connections to another worker, and end when its clients have moved there, or are too slow."""
        self.is_retiring = True
        self._channel.send({"type": "retire"})
        seconds = self.shutdown_seconds + MARGIN_SECONDS
        killing = asyncio.get_running_loop().call_later(seconds, self.kill)
        self.gone.add_done_callback(lambda _: killing.cancel())

    def stop(self) -> None:
        """Shut down gracefully.

        This is a message and not a signal: an operator may signal all processes, and a second signal means to hurry.
        """
        if self.serves:
            self._channel.send({"type": "stop"})
        else:
            self.terminate()

    def terminate(self) -> None:
        """Shut down, in a hurry if it was stopped before."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    def _receive(self, message: Mapping[str, Any], attached: socket.socket | None) -> None:
        match message["type"]:
            case "pong":
                self.has_answered = True
            case "listening":
                self.listener = attached
            case "ready" if not self.ready.done():
                self.description, self._ready_at = message, time.monotonic()
                self.ready.set_result(True)
            case "failed":
                self.problem, self.is_hopeless = message["problem"], message["is_final"]
                self.is_explained = True
            case "handed_over":
                self.handed_over.set()

    def _close(self) -> None:
        self._channel.close()
        self._gone_at = self._gone_at or time.monotonic()
        self.handed_over.set()
        if not self.ready.done():
            self.ready.set_result(False)
