"""The screenshots in the documentation."""

import pytest

from tests.browser.screenshots import IMAGES, ROOT, SHOTS


@pytest.mark.parametrize("name", SHOTS)
def test_screenshots_are_shown(name: str) -> None:
    """Each is committed, and shown on the page about the development server."""
    assert (IMAGES / name).read_bytes().startswith(b"\x89PNG")
    assert f"images/{name}" in (ROOT / "docs" / "guide" / "dev.md").read_text(encoding="utf-8")
