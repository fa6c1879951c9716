"""A browser for all tests of a module, and a server with a console."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.chromium import Browser, Page, find_chromium
from tests.browser.sample import Container
from tests.support.servers.console_server import ConsoleServer, serving_console


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """Start the browser, or skip what needs one."""
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium: install it, or name it in CHROMIUM")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    await started.start()
    yield started
    await started.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kitchen() -> AsyncIterator[ConsoleServer]:
    """Serve the sample."""
    async with serving_console(Container()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(browser: Browser) -> Page:
    """Share one page: a new one takes longer than a test."""
    return await browser.new_page()


@pytest_asyncio.fixture(loop_scope="module")
async def page(tab: Page, kitchen: ConsoleServer) -> Page:
    """Open the console afresh and wait until it shows what the server offers."""
    tab.complaints.clear()
    await tab.look_like(width=1400)
    await tab.goto(f"{kitchen.url}/console")
    await tab.until("document.querySelectorAll('.entry').length >= 13")
    return tab
