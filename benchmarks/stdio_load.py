"""Start a server on pipes and talk to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.contenders import Contender, Launch
from benchmarks.processes import started
from benchmarks.stdio_client import StdioClient


@dataclass(frozen=True)
class StdioServer:
    """Hold a running server and a client that has shaken hands with it."""

    pid: int
    client: StdioClient


@contextmanager
def stdio_server(contender: Contender) -> Iterator[StdioServer]:
    """Start a contender's server and shake hands.

    Raises:
        BenchmarkError: it is not installed, or does not answer.
    """
    contender.require()
    with started(contender.command(Launch("stdio")), pipes=True) as process:
        client = StdioClient(process)
        client.initialize()
        yield StdioServer(process.pid, client)
