"""Servers for transcripts."""

from collections.abc import Iterator

import pytest

from tests.support.servers.serving import BackgroundServers


@pytest.fixture(scope="session")
def http_servers() -> Iterator[BackgroundServers]:
    """HTTP servers that run for the whole test session."""
    servers = BackgroundServers()
    yield servers
    servers.close()
