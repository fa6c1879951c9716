"""Fixtures of the three good sources tests."""

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
    """Remove settings of the developer's environment."""
    for name in os.environ:
        if name.startswith(("AXOLOTL_", "THREE_GOOD_SOURCES_")):
            monkeypatch.delenv(name)


@pytest.fixture
async def client() -> AsyncIterator[InProcessClient]:
    """A client of the shipped server."""
    async with connect(Container()) as connected:
        yield connected


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A curator's key pair and a small signed registry."""
    return Desk(tmp_path)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Processes that end with the test."""
    with Processes() as started:
        yield started
