"""What the tests of the three good sources share."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from axolotl_examples.three_good_sources import Container
from axolotl_server import InProcessClient, connect
from tests.examples.three_good_sources.desk import Desk
from tests.support.processes import Processes


@pytest.fixture(autouse=True)
def pristine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the settings of whoever runs the tests."""
    for name in os.environ:
        if name.startswith(("AXOLOTL_", "THREE_GOOD_SOURCES_")):
            monkeypatch.delenv(name)


@pytest.fixture
async def client() -> AsyncIterator[InProcessClient]:
    """Talk to the server as it is shipped."""
    async with connect(Container()) as connected:
        yield connected


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a curator a desk with a key pair and a small registry that is signed."""
    return Desk(tmp_path)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Start processes that end with the test."""
    with Processes() as started:
        yield started
