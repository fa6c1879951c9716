"""Fixtures of the keyword search tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.examples.keyword_search.searching import Searching, searching_in


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory that may be searched; its siblings may not."""
    directory = tmp_path / "allowed"
    directory.mkdir()
    return directory


@pytest.fixture
async def searching(root: Path) -> AsyncIterator[Searching]:
    """A client of the real container, which may search that directory."""
    async with searching_in(root) as started:
        yield started
