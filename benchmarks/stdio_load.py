"""A stdio server with a connected client."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.contenders import Contender, Launch
from benchmarks.processes import started
from benchmarks.stdio_client import StdioClient


@dataclass(frozen=True)
class StdioServer:
    """A running server and a client that has completed the handshake."""

    pid: int
    client: StdioClient


@contextmanager
def stdio_server(contender: Contender) -> Iterator[StdioServer]:
    """Start the server of a contender and perform the handshake."""
    with started(contender.command(Launch("stdio")), pipes=True) as process:
        client = StdioClient(process)
        client.initialize()
        yield StdioServer(process.pid, client)
