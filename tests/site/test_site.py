"""The documentation site as its readers see it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.api.recording import public_names
from tests.browser.chromium import Browser
from tests.site.building import DOCS, navigation

pytestmark = pytest.mark.slow
in_browser = pytest.mark.asyncio(loop_scope="module")

SEARCHES = {
    "deadline": "operate/deadlines",
    "rate limit": "operate/limits",
    "graceful shutdown": "operate/health",
    "circuit breaker": "operate/resilience",
    "audit log": "operate/audit",
    "live reload": "guide/dev",
    "RBAC": "operate/authorization",
    "environment variables": "operate/settings",
    "pytest fixtures": "guide/testing",
    "breaking changes": "guide/contract",
    "skills": "guide/skills",
    "zero downtime": "operate/workers",
    "FastMCP": "migrate",
    "Claude Desktop": "operate/deployment",
    "Misdirected request": "reference/troubleshooting",
    "ITool": "reference/api-tools",
}
"""Words that people search for, each with a page that is among the first three results."""

DIALOG = "[...document.querySelectorAll('body > *')].find((one) => one.shadowRoot?.querySelector('dialog'))?.shadowRoot"


class _Links(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id") or "")
        for name in ("href", "src"):
            self.links.append(attributes.get(name) or "")


def test_navigation() -> None:
    """The navigation has every page once. Skills in the examples are not pages."""
    found = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(entry.page for entry in navigation()) == sorted(
        one for one in found if not one.startswith("examples/")
    )


def test_pages(site: Path) -> None:
    """The site has the pages of the navigation and no others, neither itself nor in its search."""
    built = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    pages = {entry.page.removesuffix(".md") for entry in navigation() if entry.page != "index.md"}
    assert built == {".", *pages}
    items = json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]
    assert {item["location"].partition("#")[0].removesuffix("/") for item in items} <= {"", *pages}


def test_links(site: Path) -> None:
    """Every link leads to a file of the site, and to an anchor on its page."""
    pages = {path: _Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    broken = []
    for path, page in pages.items():
        base = f"http://site/{path.parent.relative_to(site).as_posix()}/"
        for link in page.links:
            target = urlsplit(urljoin(base, link))
            if target.netloc != "site":
                continue
            found = site / unquote(target.path).lstrip("/")
            found = found / "index.html" if found.is_dir() else found
            if not found.is_file() or (found in pages and unquote(target.fragment) not in pages[found].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_llms_text(site: Path) -> None:
    """Language models find an index of all pages."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    for path in re.findall(r"\(https://axolotl-mcp\.github\.io/axolotl/(.*?)\)", text):
        assert (site / path / "index.html").is_file(), path
    assert text.count("\n- [") == len(list(navigation()))


def test_api_reference(site: Path) -> None:
    """The reference shows signatures, defaults and docstrings of every name of the public packages."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(site.glob("reference/api-*/index.html"))]
    for path in public_names():
        heading = f'id="{path}" class="doc doc-heading"'
        assert sum(page.count(heading) for page in pages) == 1, heading
    text = re.sub(r"<[^>]+>", "", "".join(pages))
    for words in ("ITool", "execute(", "timeout_seconds", "connect(", "Raises"):
        assert words in text or words.replace(" ", "&nbsp;") in text, words


@in_browser
@pytest.mark.parametrize(("words", "expected"), SEARCHES.items())
async def test_search(browser: Browser, address: str, words: str, expected: str) -> None:
    """A search finds its page among the first three results."""
    page = await browser.new_page()
    await page.look_like(width=1300)
    await page.goto(address)
    await page.evaluate("document.querySelector('.md-search__button').click()")
    await page.until(f"{DIALOG}?.querySelector('dialog').open && {DIALOG}.activeElement?.tagName === 'INPUT'")
    await page.write(words)
    links = f"[...{DIALOG}.querySelectorAll('ol a')].map((one) => new URL(one.href).pathname.split('#')[0])"
    found = await page.until(f"{links}.length && {links}")
    distinct = list(dict.fromkeys(found))
    assert f"/{expected}/" in distinct[:3], json.dumps(distinct[:8])


@in_browser
async def test_phone(browser: Browser, address: str) -> None:
    """On a phone, no page scrolls sideways, and nothing is loaded from elsewhere."""
    page = await browser.new_page()
    await page.look_like(width=390, height=844)
    for path in ["", *(entry.page.removesuffix(".md") + "/" for entry in navigation() if entry.page != "index.md")]:
        await page.goto(address + path)
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{path} is {wide} pixels wide"
        loaded = await page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        assert all(url.startswith(address) for url in loaded), path
    assert page.complaints == []


@in_browser
async def test_length_of_the_reference(browser: Browser, address: str) -> None:
    """No page of the settings or of the API is longer than 15 screens."""
    page = await browser.new_page()
    await page.look_like(width=1280, height=800)
    heights = {}
    for entry in navigation():
        if entry.page.startswith(("operate/settings", "reference/settings", "reference/api")):
            await page.goto(address + entry.page.removesuffix(".md") + "/")
            heights[entry.page] = await page.evaluate("document.documentElement.scrollHeight")
    assert {name: height for name, height in heights.items() if height > 15 * 800} == {}


@in_browser
@pytest.mark.parametrize(("dark", "scheme"), [(False, "default"), (True, "slate")])
async def test_look(browser: Browser, address: str, dark: bool, scheme: str) -> None:
    """The header shows the logo, which is also the icon of the site, and colors follow the system."""
    page = await browser.new_page()
    await page.look_like(width=1280, dark=dark)
    await page.goto(address)
    assert await page.evaluate("document.body.dataset.mdColorScheme") == scheme
    assert await page.evaluate("document.querySelector('.md-header .md-logo img').naturalWidth") > 0
    icon = await page.evaluate("document.querySelector('link[rel=icon]').href")
    assert icon == address + "images/logo.svg"


@in_browser
async def test_long_texts(browser: Browser, address: str) -> None:
    """Code in tables is not broken in the middle of a word, and the table of contents shortens long headings."""
    page = await browser.new_page()
    await page.look_like(width=1280, height=1000)
    await page.goto(f"{address}operate/task-workers/")
    [lines] = await page.evaluate(
        "[...document.querySelectorAll('table code')].filter((one) => one.textContent === 'sqlite:///tasks.db')"
        ".map((one) => one.getClientRects().length)"
    )
    assert lines == 1
    await page.goto(f"{address}reference/troubleshooting/")
    heights = await page.evaluate(
        "[...document.querySelectorAll('.md-nav--secondary .md-nav__link')].map((one) => one.clientHeight)"
    )
    assert 0 < max(heights) <= 50
