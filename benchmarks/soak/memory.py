"""Checks that the memory of a server does not grow over calls and sessions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks import wire
from benchmarks.errors import BenchmarkError
from benchmarks.http_client import HttpClient
from benchmarks.soak.fleet import fleet
from benchmarks.usage import resident_bytes

_TARGET = "benchmarks.servers.axolotl_add:Container"
_CONNECTIONS = 8
_STEPS = 10
_WARM_STEPS = 2
_MEGABYTE = 1 << 20
_ALLOWED_MEGABYTES = 4.0
"""The allowed growth after the first fifth of the work, when everything has been used once."""


@dataclass(frozen=True)
class Course:
    """The resident memory after each tenth of the work, in MiB."""

    what: str
    units: int
    megabytes: tuple[float, ...]

    @property
    def growth(self) -> float:
        """Return the growth of the memory after the first fifth."""
        return self.megabytes[-1] - self.megabytes[_WARM_STEPS - 1]

    @property
    def is_flat(self) -> bool:
        """Return whether the growth is negligible."""
        return self.growth <= _ALLOWED_MEGABYTES

    def __str__(self) -> str:
        values = " ".join(f"{value:.1f}" for value in self.megabytes)
        verdict = "flat" if self.is_flat else "GROWS"
        growth = f"{self.growth:+.1f} since the first fifth"
        return f"{self.units:,} {self.what}: {values} MiB after each tenth, {growth}: {verdict}"


def over_calls(calls: int) -> Course:
    """Make calls without a session and record the memory of the server."""

    def step(client: HttpClient, port: int, first: int, count: int) -> None:
        calls = wire.stateless_calls(port, first, count)
        batches = (calls[number::_CONNECTIONS] for number in range(_CONNECTIONS))
        client.run([batch for batch in batches if batch], wire.ANSWER)

    return _watched("calls", calls, step, workers=1)


def over_sessions(sessions: int, workers: int = 1, redis_url: str | None = None) -> Course:
    """Open sessions, make one call in each, and abandon them; every other one is ended explicitly."""
    environment = {"AXOLOTL_SESSIONS__IDLE_SECONDS": "2", "AXOLOTL_SESSIONS__MAXIMUM": str(sessions + 1)}
    if redis_url is not None:
        environment["AXOLOTL_REDIS__URL"] = redis_url

    def step(client: HttpClient, port: int, first: int, count: int) -> None:
        for number in range(first, first + count):
            _use_session(client, port, number)

    what = "sessions" if redis_url is None else f"sessions that {workers} workers share"
    return _watched(what, sessions, step, workers, environment)


def _use_session(client: HttpClient, port: int, number: int) -> None:
    connection = number % _CONNECTIONS
    session = client.exchange(wire.session_initialize(port), connection).header("mcp-session-id")
    if not session:
        raise BenchmarkError("the server did not open a session")
    client.exchange(wire.session_initialized(port, session), connection)
    [call] = wire.session_calls(port, session, number, 1)
    if wire.ANSWER not in client.exchange(call, connection).body:
        raise BenchmarkError("a call in a session was not answered")
    if number % 2:
        client.exchange(wire.session_end(port, session), connection)


def _watched(
    what: str,
    units: int,
    step: Callable[[HttpClient, int, int, int], None],
    workers: int,
    environment: Mapping[str, str] | None = None,
) -> Course:
    with fleet(_TARGET, workers, environment) as server:
        port = urlsplit(server.url).port or 0
        client = HttpClient(port, _CONNECTIONS)
        each, megabytes = max(1, units // _STEPS), []
        try:
            for number in range(_STEPS):
                client.connect()
                step(client, port, number * each, each)
                megabytes.append(sum(map(resident_bytes, server.workers() or [server.pid])) / _MEGABYTE)
        finally:
            client.close()
    return Course(what, each * _STEPS, tuple(megabytes))
