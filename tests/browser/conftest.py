"""A browser per module, and a server with a console."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.chromium import Browser, Page, find_chromium
from tests.browser.sample import Container
from tests.support.servers.console_server import ConsoleServer, serving_console


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """A browser; tests are skipped if there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium: install it, or name it in CHROMIUM")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    await started.start()
    yield started
    await started.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kitchen() -> AsyncIterator[ConsoleServer]:
    """The sample server."""
    async with serving_console(Container()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(browser: Browser) -> Page:
    """A page that tests share, because opening one takes longer than a test."""
    return await browser.new_page()


@pytest_asyncio.fixture(loop_scope="module")
async def page(tab: Page, kitchen: ConsoleServer) -> Page:
    """The console, reloaded and ready."""
    tab.complaints.clear()
    await tab.look_like(width=1400)
    await tab.goto("about:blank")  # a link that differs only after the # loads nothing
    await tab.goto(kitchen.link)
    await tab.until("document.querySelectorAll('.entry').length >= 13")
    return tab
