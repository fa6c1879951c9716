"""Fixtures of the fault tests."""

from collections.abc import Iterator

import pytest

from tests.support.forked_processes import share_forks
from tests.support.servers.serving import StdioServers

share_forks()


@pytest.fixture(scope="session")
def stdio_servers() -> Iterator[StdioServers]:
    """Server processes that communicate over stdio."""
    servers = StdioServers()
    share_forks()
    yield servers
    servers.close()
