"""Put load on an HTTP server and charge it the CPU time of its process."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from benchmarks import wire
from benchmarks.contenders import Contender, Launch, Transport
from benchmarks.errors import BenchmarkError
from benchmarks.http_client import HttpClient
from benchmarks.model import Measure, Sample, Scale
from benchmarks.processes import free_port, listening
from benchmarks.usage import cpu_seconds

CONNECTIONS = 8
_FIRST_ID = 100_000

Encode = Callable[[int, int, int], list[bytes]]
"""Encode the calls of one connection: its index, the first id and the number of calls."""


@dataclass(frozen=True)
class HttpServer:
    """Hold a running server and a client connected to it."""

    pid: int
    port: int
    client: HttpClient


@contextmanager
def http_server(
    contender: Contender, transport: Transport, *, many: bool = False, tuned: bool = False
) -> Iterator[HttpServer]:
    """Start a contender's server and connect to it.

    Raises:
        BenchmarkError: it is not installed, or does not start.
    """
    contender.require()
    port = free_port()
    with listening(contender.command(Launch(transport, port, many, tuned)), port) as process:
        client = HttpClient(port, CONNECTIONS)
        client.connect()
        try:
            yield HttpServer(process.pid, port, client)
        finally:
            client.close()


class CallLoad:
    """Send calls over all connections, each with an id of its own, and measure the CPU time of one."""

    def __init__(self, server: HttpServer, encode: Encode, calls: int) -> None:
        self._server = server
        self._encode = encode
        self._calls_per_connection = max(1, calls // CONNECTIONS)
        self._next_id = _FIRST_ID

    def measure(self) -> Sample:
        """Run one round."""
        batches = [self._batch(connection) for connection in range(CONNECTIONS)]
        self._server.client.connect()
        begin = cpu_seconds(self._server.pid)
        self._server.client.run(batches, wire.ANSWER)
        spent = cpu_seconds(self._server.pid) - begin
        return {"cpu": spent * 1e6 / (self._calls_per_connection * CONNECTIONS)}

    def _batch(self, connection: int) -> list[bytes]:
        first = self._next_id
        self._next_id += self._calls_per_connection
        return self._encode(connection, first, self._calls_per_connection)


def modern_calls(
    contender: Contender, calls: int, *, many: bool = False, tuned: bool = False
) -> Callable[[Scale], AbstractContextManager[Measure]]:
    """Return a series of self-contained calls."""

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with http_server(contender, "stateless", many=many, tuned=tuned) as server:
            yield _warm(CallLoad(server, _modern(server), scale.calls(calls)))

    return opened


def session_calls(contender: Contender, calls: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    """Return a series of calls in legacy sessions, one session on each connection."""

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with http_server(contender, "session", tuned=True) as server:
            yield _warm(CallLoad(server, _legacy(server), scale.calls(calls)))

    return opened


def _warm(load: CallLoad) -> Measure:
    load.measure()
    return load.measure


def _modern(server: HttpServer) -> Encode:
    return lambda connection, first, count: wire.modern_calls(server.port, first, count)


def _legacy(server: HttpServer) -> Encode:
    sessions = [_open_session(server, connection) for connection in range(CONNECTIONS)]
    return lambda connection, first, count: wire.legacy_calls(server.port, sessions[connection], first, count)


def _open_session(server: HttpServer, connection: int) -> str:
    session = server.client.exchange(wire.legacy_handshake(server.port), connection).header("mcp-session-id")
    if not session:
        raise BenchmarkError("the server opened no session")
    server.client.exchange(wire.legacy_initialized(server.port, session), connection)
    return session
