"""What clients connect to."""

import sys
from collections.abc import Iterator

import pytest

from tests.server.serving import ROOT, BackgroundServers
from tests.transcripts.tools import Container

STDIO_ARGUMENTS = ["-m", "axolotl_cli", "serve", "tests/transcripts/tools.py:Container"]


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of a server that lives as long as the tests."""
    servers = BackgroundServers()
    yield servers.url(Container)
    servers.close()


@pytest.fixture(scope="session")
def command() -> tuple[str, list[str], str]:
    """The program, arguments and directory of a server over stdio."""
    return sys.executable, STDIO_ARGUMENTS, str(ROOT)
