"""HTTP load, measured in CPU time of the server process."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from benchmarks import wire
from benchmarks.contenders import Contender, Launch, Tools, Transport
from benchmarks.errors import BenchmarkError
from benchmarks.http_client import HttpClient
from benchmarks.model import Measure, Sample, Scale
from benchmarks.processes import free_port, listening
from benchmarks.usage import cpu_seconds

CONNECTIONS = 8
_FIRST_ID = 100_000

Encode = Callable[[int, int, int], list[bytes]]
"""Encodes the calls of one connection, given its index, the first id and the number of calls."""


@dataclass(frozen=True)
class HttpServer:
    """A running server and a client that is connected to it."""

    pid: int
    port: int
    client: HttpClient


@contextmanager
def http_server(
    contender: Contender,
    transport: Transport,
    *,
    tools: Tools = "add",
    tuned: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[HttpServer]:
    """Start the server of a contender and connect to it."""
    port = free_port()
    with listening(contender.command(Launch(transport, port, tools, tuned)), port, environment) as process:
        client = HttpClient(port, CONNECTIONS)
        client.connect()
        try:
            yield HttpServer(process.pid, port, client)
        finally:
            client.close()


class CallLoad:
    """Sends calls with unique ids over all connections and measures the CPU time per call."""

    def __init__(self, server: HttpServer, encode: Encode, calls: int) -> None:
        self._server = server
        self._encode = encode
        self._calls_per_connection = max(1, calls // CONNECTIONS)
        self._next_id = _FIRST_ID

    def measure(self) -> Sample:
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


def stateless_calls(
    contender: Contender,
    calls: int,
    *,
    tools: Tools = "add",
    tuned: bool = False,
    environment: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Callable[[Scale], AbstractContextManager[Measure]]:
    """Return a series of stateless calls."""

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with http_server(contender, "stateless", tools=tools, tuned=tuned, environment=environment) as server:
            yield _warm(CallLoad(server, _stateless(server, headers or {}), scale.calls(calls)))

    return opened


def session_calls(
    contender: Contender, calls: int, *, tuned: bool = False
) -> Callable[[Scale], AbstractContextManager[Measure]]:
    """Return a series of calls in sessions, with one session per connection."""

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with http_server(contender, "session", tuned=tuned) as server:
            yield _warm(CallLoad(server, _in_session(server), scale.calls(calls)))

    return opened


def _warm(load: CallLoad) -> Measure:
    load.measure()
    return load.measure


def _stateless(server: HttpServer, headers: Mapping[str, str]) -> Encode:
    return lambda connection, first, count: wire.stateless_calls(server.port, first, count, headers)


def _in_session(server: HttpServer) -> Encode:
    sessions = [_open_session(server, connection) for connection in range(CONNECTIONS)]
    return lambda connection, first, count: wire.session_calls(server.port, sessions[connection], first, count)


def _open_session(server: HttpServer, connection: int) -> str:
    session = server.client.exchange(wire.session_initialize(server.port), connection).header("mcp-session-id")
    if not session:
        raise BenchmarkError("the server did not open a session")
    server.client.exchange(wire.session_initialized(server.port, session), connection)
    return session
