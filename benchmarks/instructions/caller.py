"""The client of the counted servers, in a process of its own: what runs beside a server would be counted, too."""

import asyncio
import socket
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

_CLOSE_SECONDS: Final = 10


class Calls(NamedTuple):
    """Requests to one server, each sent when the reply to the one before has arrived."""

    server: int | None
    """The port, or None for the server on standard input and output."""
    requests: list[bytes]
    """Sent in turn over a new connection; if empty, those of the last time are sent again, over its connection."""
    times: int


class Sockets(NamedTuple):
    """The two directions of a connection."""

    incoming: socket.socket
    outgoing: socket.socket


class Caller:
    """Makes calls in another process, while the event loop of this one serves them."""

    def __init__(self) -> None:
        requests, replies = socket.socketpair(), socket.socketpair()
        self.stdio = Sockets(requests[0], replies[0])
        """What a server may use as standard input and output."""
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        stdio = Sockets(replies[1], requests[1])
        self._process = context.Process(target=_call_servers, args=(other, stdio), daemon=True)
        self._process.start()
        for given in (other, *stdio):
            given.close()

    async def call(self, server: int | None, requests: list[bytes], count: int) -> bytes:
        """Make calls and return the last reply."""
        loop, answered = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._pipe.fileno(), answered.set)
        try:
            self._pipe.send(Calls(server, requests, count))
            await answered.wait()
        finally:
            loop.remove_reader(self._pipe.fileno())
        reply: bytes = self._pipe.recv()
        return reply

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(_CLOSE_SECONDS)


def _call_servers(pipe: Connection, stdio: Sockets) -> None:
    connection, requests = stdio, [b""]
    while True:
        try:
            calls: Calls = pipe.recv()
        except EOFError:
            return
        if calls.requests:
            connection, requests = stdio if calls.server is None else _connected(calls.server), calls.requests
        reply = b""
        for number in range(calls.times):
            reply = _exchange(connection, requests[number % len(requests)])
        pipe.send(reply)


def _connected(port: int) -> Sockets:
    opened = socket.create_connection(("127.0.0.1", port))
    return Sockets(opened, opened)


def _exchange(connection: Sockets, request: bytes) -> bytes:
    connection.outgoing.sendall(request)
    if b"notifications/" in request and not request.startswith(b"POST"):
        return b""  # only over HTTP, a notification has a response
    reply = b""
    while not reply.endswith((b"}", b"}\n", b"\r\ncontent-length: 0\r\n\r\n")):
        received = connection.incoming.recv(1 << 16)
        if not received:
            raise ConnectionError(f"the server closed the connection after {reply!r}")
        reply += received
    return reply
