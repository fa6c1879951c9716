"""A browser per module, and servers with a console."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser import sample, shop
from tests.browser.chromium import Browser, Page, find_chromium
from tests.browser.steps import open_console
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
    async with serving_console(sample.Container()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store() -> AsyncIterator[ConsoleServer]:
    """The shop, loaded by name and with visible arguments."""
    async with serving_console(shop.Container(), show_arguments=True) as server:
        server.host.assembly.target = "tests.browser.shop:Container"
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(browser: Browser) -> Page:
    """A page that tests share, because opening one takes longer than a test."""
    return await browser.new_page()


@pytest_asyncio.fixture(loop_scope="module")
async def page(tab: Page, kitchen: ConsoleServer) -> Page:
    """The console of the sample server, reloaded and ready."""
    return await open_console(tab, kitchen.link)


@pytest_asyncio.fixture(loop_scope="module")
async def counter(tab: Page, store: ConsoleServer) -> Page:
    """The console of the shop, reloaded and ready."""
    shop.Finish.reset()
    return await open_console(tab, store.link)
