"""The screenshots in the documentation show the console as it is."""

import json
from hashlib import sha256

import pytest

from tests.browser.screenshots import IMAGES, RECORD, ROOT, SHOTS, sources_digest

HINT = "run `python -m tests.browser`, look at the images, and commit them"


def test_screenshots_are_current() -> None:
    """They were taken from the page as it is now."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert recorded["sources"] == sources_digest(), f"The console changed after its screenshots were taken: {HINT}"
    assert set(recorded["images"]) == set(SHOTS)


@pytest.mark.parametrize("name", SHOTS)
def test_screenshots_are_committed(name: str) -> None:
    """Each is the recorded image, and is shown on a page."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))["images"]
    image = (IMAGES / name).read_bytes()
    assert recorded[name] == sha256(image).hexdigest(), f"{name} is not the image that was taken: {HINT}"
    assert f"images/{name}" in (ROOT / "docs" / "guide" / "dev.md").read_text(encoding="utf-8")
