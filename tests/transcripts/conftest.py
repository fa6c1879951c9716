"""What transcripts are played against."""

from collections.abc import Iterator

import pytest

from tests.server.serving import BackgroundServers


@pytest.fixture(scope="session")
def http_servers() -> Iterator[BackgroundServers]:
    """HTTP servers that live as long as the tests."""
    servers = BackgroundServers()
    yield servers
    servers.close()
