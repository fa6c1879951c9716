"""Access to the console in a browser: the link, sign-in, hostile texts, and the security policy."""

import asyncio
import json
import os
from hashlib import sha256

import httpx2
import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.sample import HOSTILE, Container
from tests.browser.steps import choose, copied, open_console, outcome
from tests.support.peers.wire import call, mirrored
from tests.support.servers.console_server import ConsoleServer, serving_console

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "let-me-in-for-tests"
TOKENS = {"auth": {"api_keys": {"ann": {"hash": f"sha256:{sha256(KEY.encode()).hexdigest()}"}}}}


async def test_the_link(browser: Browser) -> None:
    """Without the link, the page shows what to do and nothing else; with it, everything, also after a reload."""
    async with serving_console(Container()) as server:
        page = await browser.new_page()
        await page.goto(f"{server.url}/console")
        await page.until("document.querySelector('#connection').dataset.state === 'locked'")
        assert "Open the link that the server printed" in await page.text("#gate")
        assert "Loading" not in await page.text("body")
        assert await page.evaluate("document.querySelectorAll('.entry').length") == 0
        await page.evaluate(f"location.hash = {server.link.partition('#')[2]!r}")
        await page.until("document.querySelectorAll('.entry').length >= 13")
        assert await page.evaluate("location.href") == f"{server.url}/console"
        assert await page.evaluate("document.querySelector('#gate').hidden")
        await page.goto(f"{server.url}/console")
        await page.until("document.querySelectorAll('.entry').length >= 13")


async def printed(command: str, **environment: str) -> str:
    """Run a command in a shell, and return what it prints."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_shell(command, env={**os.environ, **environment}, stdout=pipe)
    output, _ = await process.communicate()
    return output.decode()


async def sign_in(page: Page, token: str) -> None:
    """Enter a token into the form, which has the focus."""
    await page.until("document.activeElement?.id === 'token'")
    await page.write(token)
    await page.press("Enter")


async def test_sign_in_and_out(browser: Browser) -> None:
    """A token is asked for, used for all requests, kept in memory only, and forgotten with everything it showed."""
    async with serving_console(Container(), TOKENS) as server:
        page = await browser.new_page()
        await page.goto(server.link)
        await page.until("document.querySelector('#connection').dataset.state === 'refused'")
        assert await page.text("#offer") == "Sign in to see the features."
        assert await page.evaluate("document.querySelector('.layout').hidden")
        assert await page.text("#sign-in-problem") == ""
        await sign_in(page, KEY)
        await page.until("document.querySelectorAll('.entry').length >= 13")
        assert await page.text("#principal") == "ann"
        stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
        assert KEY not in await page.evaluate(stored)
        assert await page.evaluate("document.querySelector('#token').value") == ""
        await choose(page, "greet")
        await page.write("Ann")
        await page.press("Enter")
        assert "Hello, Ann!" in await outcome(page, "ok")
        await page.until("document.querySelector('#calls tr[data-kind=tool]')?.innerText.includes('ann')")
        await page.allow_clipboard()
        command = await copied(page, "curl")
        assert KEY not in command
        assert "Hello, Ann!" in await printed(command, AXOLOTL_TOKEN=KEY)
        await page.evaluate("document.querySelector('#sign-out').click()")
        await page.until("document.querySelector('#connection').dataset.state === 'refused'")
        left = await page.evaluate("document.body.innerText")
        assert "Ann" not in left
        assert await page.evaluate("document.querySelectorAll('.entry, .panel, #calls tbody tr').length") == 0
        assert "Ann" not in await page.evaluate(stored)
        await page.goto(f"{server.url}/console")
        await page.until("document.querySelector('#connection').dataset.state === 'refused'")


async def test_a_wrong_token(browser: Browser) -> None:
    """A token that the server does not accept is explained, and another one can be entered."""
    async with serving_console(Container(), TOKENS) as server:
        page = await browser.new_page()
        await page.goto(server.link)
        await sign_in(page, "wrong")
        await page.until("document.querySelector('#sign-in-problem').innerText.includes('did not accept the token')")
        assert await page.evaluate("document.querySelectorAll('.entry').length") == 0
        await sign_in(page, KEY)
        await page.until("document.querySelectorAll('.entry').length >= 13")
        assert await page.evaluate("document.querySelector('#gate').hidden")


@pytest.mark.parametrize(("status", "words"), [(401, "Sign in again"), (403, "does not allow this call")])
async def test_refused_calls(page: Page, status: int, words: str) -> None:
    """A call that is refused because of its token is explained."""
    await choose(page, "greet")
    await page.write("Ada")
    body = json.dumps({"error": {"code": -32001, "message": "Missing scope: refunds"}})
    await page.evaluate(f"window.fetch = async () => new Response({body!r}, {{ status: {status} }})")
    await page.press("Enter")
    shown = await outcome(page, "refused")
    assert "Missing scope: refunds" in shown
    assert f"HTTP {status}" in shown
    assert words in shown


async def test_hostile_names(page: Page, kitchen: ConsoleServer) -> None:
    """HTML in results, addresses, and names of clients and tools in the list of calls is shown as text."""
    request = json.loads(call(HOSTILE))
    request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": HOSTILE, "version": "1"}
    async with httpx2.AsyncClient() as other:
        await other.post(f"{kitchen.url}/mcp", json=request, headers=mirrored(name=HOSTILE))
    row = await page.until("document.querySelector('#calls tr[data-kind=missing]')?.innerText")
    assert row.count(HOSTILE) == 2
    await page.until("document.querySelector('#sessions').textContent.includes('onerror')")
    await choose(page, "hostile")
    await page.press("ArrowDown")
    await page.press("Enter")
    assert HOSTILE in await outcome(page, "ok")
    await page.evaluate(f"location.hash = '#/tools/' + encodeURIComponent({HOSTILE!r})")
    await page.until("document.querySelector('#workbench').innerText.includes('no feature with this address')")
    await page.until("document.querySelector('#calls tr[data-kind=tool]')?.innerText.includes('ok')")
    await page.evaluate("document.querySelectorAll('#calls tr[data-kind=tool] button').forEach((one) => one.click())")
    await page.until("document.querySelector('#calls .details')")
    title, elements = await page.evaluate("[document.title, document.querySelectorAll('img:not(.logo)').length]")
    assert (title, elements) == ("kitchen – console", 0)
    assert page.complaints == []
    await open_console(page, kitchen.link)


async def test_identity(page: Page) -> None:
    """The page has an icon, and a link to the documentation that tells the other site nothing about the page."""
    assert await page.evaluate("document.querySelector('.logo').naturalWidth > 0")
    icon = "fetch(document.querySelector('link[rel=icon]').href).then((one) => one.headers.get('content-type'))"
    assert await page.evaluate(icon) == "image/svg+xml"
    link = "(() => { const one = document.querySelector('#documentation'); return [one.hidden, one.href, one.rel]; })()"
    hidden, address, relation = await page.evaluate(link)
    assert not hidden
    assert address.startswith("https://")
    assert relation == "noopener noreferrer"


async def test_no_requests_to_other_hosts(page: Page) -> None:
    """The page has no requests to other hosts, and its policy allows none."""
    blocked = "fetch('https://example.com/').then(() => 'sent', (error) => error.name)"
    assert await page.evaluate(blocked) == "TypeError"
    assert any("Content Security Policy" in one for one in page.complaints)
    hosts = "[...new Set(performance.getEntriesByType('resource').map((one) => new URL(one.name).host))]"
    assert await page.evaluate(hosts) == [await page.evaluate("location.host")]
