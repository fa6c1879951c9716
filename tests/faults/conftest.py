"""What the fault suite shares."""

from collections.abc import Iterator

import pytest

from tests.server.forking import share_forks
from tests.server.serving import StdioServers

share_forks()


@pytest.fixture(scope="session")
def stdio_servers() -> Iterator[StdioServers]:
    """Processes to be spoken to over stdio."""
    servers = StdioServers()
    share_forks()
    yield servers
    servers.close()
