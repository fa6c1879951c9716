"""What the tests of the keyword search share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.examples.keyword_search.searching import Searching, searching_in


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make the directory that may be searched; what lies beside it may not."""
    directory = tmp_path / "allowed"
    directory.mkdir()
    return directory


@pytest.fixture
async def searching(root: Path) -> AsyncIterator[Searching]:
    """Serve the real container around that directory."""
    async with searching_in(root) as started:
        yield started
