"""What all tests share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a database of its own, also in the process of `axolotl_server`."""
    monkeypatch.setenv("ACME_SHOP_DATABASE", str(tmp_path / "orders.db"))
