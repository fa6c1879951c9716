"""A fair split of connections between workers that listen on one socket."""

import asyncio
import logging
import mmap
import os
import socket
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:  # the supervisor loads this module, and does without uvicorn
    from axolotl_server.http.server.uvicorn_adapter import UvicornServer

_SLOTS: Final = 256
_BYTES: Final = 4
_ABSENT: Final = -1
_MAX_CHANGES: Final = 2**30


class ConnectionBoard:
    """Memory that all workers and their supervisor share: the number of connections of each worker, and its changes."""

    def __init__(self, descriptor: int) -> None:
        """Map the file with this descriptor."""
        self._memory = mmap.mmap(descriptor, 2 * _SLOTS * _BYTES)
        self._numbers = memoryview(self._memory).cast("i")
        self._counts, self._changes = self._numbers[:_SLOTS], self._numbers[_SLOTS:]

    @staticmethod
    def make() -> tuple["ConnectionBoard", int]:
        """Make an empty board, and a descriptor that workers inherit."""
        import tempfile  # only a supervisor needs it

        with tempfile.TemporaryFile() as file:
            file.truncate(2 * _SLOTS * _BYTES)
            descriptor = os.dup(file.fileno())
        board = ConnectionBoard(descriptor)
        for number in range(1, _SLOTS + 1):
            board.leave(number)
        return board, descriptor

    def write(self, number: int, connections: int) -> None:
        """Set the number of connections of a worker."""
        if number <= _SLOTS:
            self._counts[number - 1] = connections
            self._changes[number - 1] = (self._changes[number - 1] + 1) % _MAX_CHANGES

    def leave(self, number: int) -> None:
        """Remove a worker, which accepts no connections any more."""
        self.write(number, _ABSENT)

    def fewest_of_others(self, number: int) -> int | None:
        """Return the smallest number of connections of any other worker, None without another worker."""
        others = [count for slot, count in enumerate(self._counts, 1) if count != _ABSENT and slot != number]
        return min(others, default=None)

    def changes_of_others(self, number: int) -> int:
        """Return a number that differs after every change by another worker."""
        own = self._changes[number - 1] if number <= _SLOTS else 0
        return sum(self._changes) - own

    def close(self) -> None:
        """Unmap the memory."""
        for view in (self._counts, self._changes, self._numbers):
            view.release()
        self._memory.close()


class BoardPlace(NamedTuple):
    """A worker's place on the board."""

    board: ConnectionBoard
    number: int


_log: Final = logging.getLogger("axolotl")

_YIELD_SECONDS: Final = 0.002
"""How long a worker leaves a connection to workers that have fewer."""
_MAX_UNHEARD: Final = 2
"""How many connections a worker accepts at once without news of the others, whose numbers may be outdated."""
_PUBLISH_SECONDS: Final = 0.1
"""How often a worker publishes its number of connections, some of which may have ended."""
_OUT_OF_FILES_SECONDS: Final = 1.0
_MAX_ACCEPTED: Final = 64
"""How many connections are accepted in one turn of the event loop."""


class Acceptor:
    """Accepts connections, many in each turn of the event loop.

    uvloop accepts one in each turn. If turns take long, new connections then wait in the kernel, where no limit sees
    them.
    """

    def __init__(self, server: "UvicornServer", listener: socket.socket) -> None:
        self._server = server
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._attaching: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """Accept connections from now on."""
        self._listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no more connections; other processes may still accept from the socket."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept_some)

    def _accept_some(self) -> None:
        for _ in range(_MAX_ACCEPTED):
            if not self._accept():
                return

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._accept()
        if self._pause is None:
            self._listen()

    def _accept(self) -> bool:
        """Accept a connection; return False if there is none."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            _log.error("accepting connections failed, trying again in a second: %s", error.strerror)
            self._wait(_OUT_OF_FILES_SECONDS)
            return False
        attaching = self._loop.create_task(self._server.attach(connection))
        self._attaching.add(attaching)
        attaching.add_done_callback(self._attaching.discard)
        return True


class FairAcceptor(Acceptor):
    """Accepts one connection at a time, and leaves it to workers with fewer connections for a moment.

    The kernel wakes all waiting workers, and the fastest accepts everything: often one worker gets all connections of a
    client that opens several. When clients reconnect, others may have fewer connections than the board says, so that a
    worker also waits if it has not heard of the others. One that does not respond, for example because it is stuck, is
    not waited for.
    """

    def __init__(self, server: "UvicornServer", listener: socket.socket, place: BoardPlace) -> None:
        super().__init__(server, listener)
        self._board, self._number = place
        self._publishing: asyncio.TimerHandle | None = None
        self._unheard = 0
        """How many connections it has accepted since the last news of others, or the last wait for them."""
        self._news = self._board.changes_of_others(self._number)

    def start(self) -> None:
        """Accept connections from now on, in turn with other workers."""
        self._publish()
        super().start()

    def close(self) -> None:
        """Accept no more connections, and leave the board."""
        if self._closed:
            return
        super().close()
        if self._publishing is not None:
            self._publishing.cancel()
        self._board.leave(self._number)

    def _accept_some(self) -> None:
        for _ in range(_MAX_ACCEPTED):
            fewest = self._board.fewest_of_others(self._number)
            if fewest is not None and (self._count() > fewest or self._is_first_to_accept()):
                self._wait(_YIELD_SECONDS)
                return
            if not self._accept():
                return

    def _resume(self) -> None:
        self._unheard = 0
        super()._resume()

    def _is_first_to_accept(self) -> bool:
        """Whether it accepts connections so quickly that others may not have noticed them yet."""
        news = self._board.changes_of_others(self._number)
        if news != self._news:
            self._news, self._unheard = news, 0
        return self._unheard >= _MAX_UNHEARD

    def _accept(self) -> bool:
        accepted = super()._accept()
        if accepted:
            self._unheard += 1
            self._board.write(self._number, self._count())
        return accepted

    def _count(self) -> int:
        return len(self._server.connections) + len(self._attaching)

    def _publish(self) -> None:
        self._board.write(self._number, self._count())
        self._publishing = self._loop.call_later(_PUBLISH_SECONDS, self._publish)
