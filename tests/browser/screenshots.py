"""The screenshots of the console in the documentation."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Final
from unittest.mock import patch

import httpx2

from tests.browser import shop
from tests.browser.chromium import Browser, Page
from tests.browser.steps import choose
from tests.support.peers.wire import call, mirrored
from tests.support.servers.console_server import ConsoleServer, serving_console

ROOT: Final = Path(__file__).parents[2]
IMAGES: Final = ROOT / "docs" / "images"
_NOW: Final = 1_790_000_000
_SECONDS: Final = (0.0008, 0.0031, 0.0142, 0.0019, 0.0455, 0.0027)

_FIXED_CLOCK: Final = f"""(() => {{
    const Real = Date;
    window.Date = class extends Real {{
        constructor(...given) {{ super(...(given.length ? given : [{_NOW}000])); }}
        static now() {{ return {_NOW}000; }}
    }};
    let now = 0;
    performance.now = () => {{ now += 18.4; return now; }};
}})()"""
_NO_MOTION: Final = """(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('* { caret-color: transparent !important; animation: none !important; }');
    document.adoptedStyleSheets = [sheet];
})()"""


class FixedClock:
    """Stands in for the module `time` in the journal: calls arrive every 7 s, and take one of a few durations."""

    def __init__(self) -> None:
        self._now = _NOW - 900.0
        self._elapsed = 0.0
        self._steps = cycle(_SECONDS)

    def time(self) -> float:
        """Return the time of the next call."""
        self._now += 7
        return self._now

    def perf_counter(self) -> float:
        """Return a time after a duration."""
        self._elapsed += next(self._steps)
        return self._elapsed


async def overview(page: Page) -> None:
    """A call with its result, and the calls of other clients."""
    await choose(page, "get_order")
    await page.write("1042")
    await page.press("Enter")
    await page.until("document.querySelector('.panel .status').dataset.outcome === 'ok'")


async def field_errors(page: Page) -> None:
    """Validation errors of the server at their fields."""
    await choose(page, "place_order")
    await page.write("Ada Lovelace")
    for name, value in (("sku", "AX-9999"), ("quantity", "2"), ("number", "4711 0042"), ("year", "2024")):
        await page.tab_to(name)
        await page.write(value)
    await page.press("Enter")
    await page.until("document.querySelector('.panel .status').dataset.outcome === 'error'")


async def approval(page: Page) -> None:
    """A call that waits for approval."""
    await choose(page, "cancel_order")
    await page.write("1042")
    await page.tab_to("reason", most=1)
    await page.press("ArrowDown")
    await page.press("Enter")
    await page.until("document.querySelector('.question')")
    await page.tab_to("Approve", most=1)


async def progress(page: Page) -> None:
    """A call that reports progress."""
    await choose(page, "export_orders")
    await page.tab_to("send total")
    await page.tab_to("total", most=1)
    await page.write("640")
    await page.press("Enter")
    await page.until("document.querySelector('.panel .progress')?.innerText.includes('shard 3')")
    await page.until("document.querySelector('#running').innerText === '1 running'")


class Shot:
    """A screenshot: its window, and what a person did before."""

    def __init__(
        self, act: Callable[[Page], Awaitable[None]], *, width: int = 1280, height: int = 800, dark: bool = False
    ) -> None:
        self.act = act
        self.width, self.height, self.dark = width, height, dark


SHOTS: Final[Mapping[str, Shot]] = {
    "console.png": Shot(overview),
    "console-dark.png": Shot(progress, dark=True),
    "console-errors.png": Shot(field_errors),
    "console-approval.png": Shot(approval),
    "console-narrow.png": Shot(overview, width=420, height=900),
}


async def take_all(browser: Browser) -> None:
    """Take every screenshot."""
    for name, shot in SHOTS.items():
        image = await take(browser, shot)
        (IMAGES / name).write_bytes(image)
        print(f"docs/images/{name}: {len(image) / 1024:.0f} KiB", file=sys.stderr)


async def take(browser: Browser, shot: Shot) -> bytes:
    """Take one screenshot with a server and a page of its own."""
    shop.Finish.reset()
    with patch("axolotl_server.extensions.console.journal.time", FixedClock()):
        async with serving_console(shop.Container()) as server:
            server.host.assembly.target = "shop.py"
            with patch("axolotl_server.extensions.console.routes.import_path", lambda target: _ImportPath()):
                return await _photograph(browser, server, shot)


class _ImportPath:
    def _asdict(self) -> dict[str, object]:
        return {"module": "shop", "attribute": "Container", "is_called": True}


async def _photograph(browser: Browser, server: ConsoleServer, shot: Shot) -> bytes:
    await _call_as_others(server)
    page = await browser.new_page()
    await page.say("Page.addScriptToEvaluateOnNewDocument", source=_FIXED_CLOCK)
    await page.say("Emulation.setTimezoneOverride", timezoneId="UTC")
    await page.look_like(width=shot.width, height=shot.height, dark=shot.dark)
    await page.goto(server.link)
    await page.until("document.querySelector('.panel') && document.querySelectorAll('#calls tr').length > 3")
    await page.evaluate(_NO_MOTION)
    await shot.act(page)
    await page.until("document.querySelector('#calls tr[data-kind=tool]')?.textContent.includes('axolotl-console')")
    await page.evaluate("document.querySelector('#search').value = ''")
    await page.evaluate("document.querySelector('#search').dispatchEvent(new Event('input'))")
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    image = await page.screenshot()
    shop.Finish.event.set()
    return image


async def _call_as_others(server: ConsoleServer) -> None:
    """Make the calls of other clients."""
    clients = ("claude-code 2.1.0", "cursor 3.2")
    calls: list[tuple[str, dict[str, object]]] = [
        ("search_products", {"query": "filter"}),
        ("get_order", {"number": 1041}),
        ("get_order", {"number": 9999}),
        ("search_products", {"query": "moss"}),
        ("get_order", {"number": 0}),
        (
            "place_order",
            {
                "customer": "Grace",
                "lines": [{"sku": "AX-0107", "quantity": 1}],
                "payment": {"kind": "invoice", "reference": "PO-7"},
            },
        ),
        ("get_order", {"number": 1042}),
    ]
    async with httpx2.AsyncClient() as other:
        for (name, arguments), client in zip(calls, cycle(clients)):
            body = json.loads(call(name, arguments))
            called, version = client.split()
            body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": called, "version": version}
            await other.post(f"{server.url}/mcp", json=body, headers=mirrored(name=name))
