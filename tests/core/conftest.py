"""What several tests of the core need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core.scanned_packages import MakePackage, written_below


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePackage]:
    """Write importable files; what was imported from them is forgotten afterwards."""
    yield from written_below(tmp_path, monkeypatch)
