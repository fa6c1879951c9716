"""What transcripts are played against."""

from collections.abc import Iterator

import pytest

from tests.support.servers.serving import BackgroundServers, StdioServers


@pytest.fixture(scope="session")
def http_servers() -> Iterator[BackgroundServers]:
    """HTTP servers that live as long as the tests."""
    servers = BackgroundServers()
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def stdio_servers() -> Iterator[StdioServers]:
    """Processes to be spoken to over stdio."""
    servers = StdioServers()
    yield servers
    servers.close()
