"""Servers and clients for the tests of client compatibility."""

import logging
import sys
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.connections import Places
from tests.support.clients.http_process import http_process
from tests.support.clients.kept_connections import Lines
from tests.support.commands import ROOT
from tests.support.servers.serving import BackgroundServers
from tests.transcripts.tools import Container

STDIO_ARGUMENTS = ["-m", "axolotl_cli", "serve", "tests/transcripts/tools.py:Container"]
FEATURES = "tests.support.clients.full_container:Container"


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of a server that runs for the whole test module."""
    servers = BackgroundServers()
    yield servers.url(Container)
    servers.close()


@pytest.fixture(scope="session")
def command() -> tuple[str, list[str], str]:
    """The program, arguments and directory of a stdio server."""
    return sys.executable, STDIO_ARGUMENTS, str(ROOT)


@pytest.fixture(scope="session")
def places() -> Iterator[Places]:
    """The addresses of a server with every kind of feature."""
    arguments = ["-m", "axolotl_cli", "serve", FEATURES]
    with http_process(FEATURES) as address:
        sse_address = address.removesuffix("/mcp") + "/sse"
        yield Places(address, sse_address, (sys.executable, arguments, str(ROOT)))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lines(places: Places) -> AsyncIterator[Lines]:
    """Connections to that server over every route."""
    lines = Lines(places)
    yield lines
    await lines.close()


@pytest_asyncio.fixture(loop_scope="session")
async def peer(request: pytest.FixtureRequest, lines: Lines) -> IPeer:
    """The client that uses the route of the test's parameter."""
    return await lines.to(request.param)


@pytest.fixture(autouse=True)
def contentment(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if a client reports a problem."""
    yield
    records = [record for phase in ("setup", "call") for record in caplog.get_records(phase)]
    theirs = [record for record in records if record.name.partition(".")[0] in ("mcp", "client", "fastmcp")]
    assert [record.getMessage() for record in theirs if record.levelno >= logging.WARNING] == []
