"""Fixtures for the tests of the core."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core.scanned_packages import MakePackage, written_below


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePackage]:
    """Write importable files, and remove their modules afterwards."""
    yield from written_below(tmp_path, monkeypatch)
