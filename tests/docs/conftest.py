"""Fixtures of the documentation tests."""

import sys
from collections.abc import Iterator

import pytest

from tests.support.docs.pages import EXAMPLES


@pytest.fixture(autouse=True)
def examples_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let examples import each other by name, and unload them after the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(EXAMPLES / "project")
    monkeypatch.syspath_prepend(EXAMPLES)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(EXAMPLES)):
            del sys.modules[name]
