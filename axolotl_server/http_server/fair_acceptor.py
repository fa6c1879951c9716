"""Taking connections from a socket that several workers listen at, so that all of them have about as many."""

import asyncio
import logging
import mmap
import os
import socket
import tempfile
from typing import Any, Final, NamedTuple

import uvicorn

_PLACES: Final = 256
_BYTES: Final = 4
_ABSENT: Final = -1


class ConnectionBoard:
    """A piece of memory that all workers and their supervisor share: a number for each worker."""

    def __init__(self, descriptor: int) -> None:
        """Look at the board that a file is."""
        self._memory = mmap.mmap(descriptor, _PLACES * _BYTES)
        self._counts = memoryview(self._memory).cast("i")

    @staticmethod
    def make() -> tuple["ConnectionBoard", int]:
        """Make a board on which nobody is; gives the descriptor by which workers find it, too."""
        with tempfile.TemporaryFile() as file:
            file.truncate(_PLACES * _BYTES)
            descriptor = os.dup(file.fileno())
        board = ConnectionBoard(descriptor)
        for number in range(1, _PLACES + 1):
            board.leave(number)
        return board, descriptor

    def write(self, number: int, connections: int) -> None:
        """Say how many connections a worker has."""
        if number <= _PLACES:
            self._counts[number - 1] = connections

    def leave(self, number: int) -> None:
        """Take a worker off the board: it takes no connections."""
        self.write(number, _ABSENT)

    def fewest_of_others(self, number: int) -> int | None:
        """Give the smallest number that another worker has, None where there is no other."""
        others = [count for place, count in enumerate(self._counts, 1) if count != _ABSENT and place != number]
        return min(others, default=None)

    def close(self) -> None:
        """Look at it no more."""
        self._counts.release()
        self._memory.close()


class BoardPlace(NamedTuple):
    """What a worker needs to write on the board."""

    board: ConnectionBoard
    number: int


_log: Final = logging.getLogger("axolotl")

_COURTESY_SECONDS: Final = 0.002
"""How long a worker leaves a connection to those who have fewer."""
_NEWS_SECONDS: Final = 0.1
"""How often the others are told of connections that have ended."""
_OUT_OF_FILES_SECONDS: Final = 1.0


class FairAcceptor:
    """Takes one connection at a time, and lets others go first who have fewer.

    The system wakes everybody who waits, and whoever is fastest takes all: often one worker all connections of a
    client that opens several. Nobody is waited for who does not come, such as a worker that is stuck.
    """

    def __init__(self, server: uvicorn.Server, listener: socket.socket, place: BoardPlace) -> None:
        self._server = server
        self._listener = listener
        self._board, self._number = place
        self._loop = asyncio.get_running_loop()
        self._attaching: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._telling: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """Take connections."""
        self._listener.setblocking(False)
        self._tell()
        self._listen()

    def close(self) -> None:
        """Take none any more; others that listen at the socket do."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener)
        for timer in (self._pause, self._telling):
            if timer is not None:
                timer.cancel()
        self._board.leave(self._number)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._consider)

    def _consider(self) -> None:
        """Take a connection, or see whether somebody else does who has fewer."""
        fewest = self._board.fewest_of_others(self._number)
        if fewest is None or self._count() <= fewest:
            self._take()
        else:
            self._wait(_COURTESY_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._take()
        if self._pause is None:
            self._listen()

    def _take(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.error("no connection can be taken for a second: %s", error.strerror)
            self._wait(_OUT_OF_FILES_SECONDS)
            return
        attaching = self._loop.create_task(self._attach(connection))
        self._attaching.add(attaching)
        attaching.add_done_callback(self._attaching.discard)
        self._board.write(self._number, self._count())

    async def _attach(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        config = self._server.config
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=config.ssl)
        except OSError:  # it has gone already, or knows no TLS
            connection.close()

    def _protocol(self) -> asyncio.Protocol:
        config: Any = self._server.config
        protocol: asyncio.Protocol = config.http_protocol_class(
            config=config,
            server_state=self._server.server_state,
            app_state=self._server.lifespan.state,
            _loop=self._loop,
        )
        return protocol

    def _count(self) -> int:
        return len(self._server.server_state.connections) + len(self._attaching)

    def _tell(self) -> None:
        self._board.write(self._number, self._count())
        self._telling = self._loop.call_later(_NEWS_SECONDS, self._tell)
