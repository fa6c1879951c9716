"""The tab with the tasks of all callers, in a real browser."""

import httpx2
import pytest

from tests.browser.chromium import Browser
from tests.browser.steps import WEAKEST_CONTRAST, open_console
from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import Job
from tests.support.peers.task_results import begin
from tests.support.servers.console_server import serving_console
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = "[...document.querySelectorAll('#tasks tbody tr')].map((one) => one.innerText.replace(/\\s+/g, ' '))"


async def test_tasks_are_shown_and_cancelled(browser: Browser) -> None:
    """The tab lists tasks while it is shown, and a button, reached with the keyboard, cancels one."""
    job = Job()
    async with serving_console(container_of(job)) as server, httpx2.AsyncClient() as http:
        page = await open_console(await browser.new_page(), server.link)
        await page.evaluate("document.querySelector('#tasks-panel-tab').click()")
        await page.until("document.querySelector('#tasks-note').innerText === 'No tasks yet.'")
        client = Client(http, f"{server.url}/mcp")
        await client.begin()
        await begin(client, "job")
        await page.until("document.querySelectorAll('#tasks tbody tr').length === 1")
        (row,) = await page.evaluate(ROWS)
        assert " job working 1 " in row
        assert row.endswith(" s Cancel")
        for width in (360, 1400):
            await page.look_like(width=width, dark=True)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await page.evaluate(WEAKEST_CONTRAST) >= 4.5
        await page.tab_to("Cancel task")
        await page.press("Enter")
        await page.until(f"({ROWS})[0].includes('cancelled')")
        await job.cancelled.wait()
        assert await page.evaluate("document.querySelectorAll('#tasks button').length") == 0
    assert page.complaints == []


async def test_a_server_without_tasks_has_no_tab(browser: Browser) -> None:
    """The tab is hidden, and the arrow keys pass over it."""
    async with serving_console(container_of(Echo())) as server:
        page = await open_console(await browser.new_page(), server.link)
        every = "[...document.querySelectorAll('#tabs .tab')]"
        tabs = await page.evaluate(f"{every}.filter((one) => one.checkVisibility()).map((one) => one.innerText)")
        assert tabs
        assert "Tasks" not in tabs
        await page.evaluate("document.querySelector('#tabs [aria-selected=true]').focus()")
        for _ in tabs:
            await page.press("ArrowRight")
            assert await page.evaluate("document.activeElement.checkVisibility()")
        assert await page.evaluate("document.activeElement.innerText") == tabs[0]
    assert page.complaints == []
