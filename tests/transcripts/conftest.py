"""Servers for transcripts."""

from collections.abc import Iterator

import pytest

from tests.support.servers.serving import BackgroundServers, StdioServers


@pytest.fixture(scope="session")
def http_servers() -> Iterator[BackgroundServers]:
    """HTTP servers that run for the whole test session."""
    servers = BackgroundServers()
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def stdio_servers() -> Iterator[StdioServers]:
    """Server processes that communicate over stdio."""
    servers = StdioServers()
    yield servers
    servers.close()
