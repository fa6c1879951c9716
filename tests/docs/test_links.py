"""Links within the repository."""

import re

import pytest

from tests.site.generated import MARKER
from tests.support.docs.pages import REPOSITORY, ROOT, page_names, read_page

PAGES = [*page_names(), "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]


def _links(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links(name: str) -> None:
    """Every relative link names an existing file and heading, and every link to the repository an existing file."""
    for link in _links(read_page(name)):
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), f"{name}: {link}"
            if not link.startswith(REPOSITORY):
                continue
            path, _, anchor = link.removeprefix(REPOSITORY).partition("#")
            target = ROOT / path
        else:
            path, _, anchor = link.partition("#")
            target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), f"{name}: {link}"
        text = target.read_text(encoding="utf-8") if anchor else ""
        if anchor and not MARKER.search(text):  # the tests of the site look at headings of generated parts
            assert anchor in _anchors(text), f"{name}: {link}"


def test_paths_in_prose() -> None:
    """A path of the source tree in backticks exists."""
    for name in PAGES:
        for path in re.findall(r"`((?:axolotl_\w+|benchmarks|docs|tests)/[\w/.-]+)`", read_page(name)):
            assert (ROOT / path).exists(), f"{name}: {path}"
