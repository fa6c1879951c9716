"""The console's list of calls, counters, addresses, history and copies, in a browser."""

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.shop import Finish
from tests.browser.steps import choose, copied, enter, outcome
from tests.support.peers.wire import call, mirrored
from tests.support.servers.console_server import ConsoleServer

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[2]
ROWS = "document.querySelectorAll('#calls tbody tr[data-kind=tool]:not([hidden])')"


async def call_tool(store: ConsoleServer, name: str, **arguments: object) -> None:
    """Call a tool as another client."""
    async with httpx2.AsyncClient(timeout=20) as other:
        headers = {**mirrored(name=name), **({"Mcp-Param-Tenant": "eu"} if "tenant" in arguments else {})}
        await other.post(f"{store.url}/mcp", content=call(name, arguments), headers=headers)


async def test_a_line_per_call(counter: Page, store: ConsoleServer) -> None:
    """A call of another client appears as one line; its reference and its arguments are in its details."""
    before = await counter.evaluate(f"{ROWS}.length")
    await call_tool(store, "get_order", number=9999)
    await counter.until(f"{ROWS}.length > {before}")
    row = f"{ROWS}[0]"
    await counter.until(f"{row}.innerText.includes('error')")
    assert "get_order" in await counter.evaluate(f"{row}.innerText")
    assert await counter.evaluate(f"{row}.offsetHeight") < 36
    await counter.evaluate(f"{row}.querySelector('button').focus()")
    await counter.press("Enter")
    details = await counter.until("document.querySelector('#calls .details')?.innerText")
    assert '{"number":9999}' in details
    assert "2026-07-28" in details
    assert await counter.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    await counter.tab_to("Use these arguments", most=2)
    await counter.press("Enter")
    assert await counter.until("document.querySelector('.arguments input').value") == "9999"
    assert await counter.evaluate("location.hash") == "#/tools/get_order"
    assert "1 call" in await counter.evaluate("document.querySelector('#latencies svg').getAttribute('aria-label')")


async def test_running_calls_are_counted_live(counter: Page, store: ConsoleServer) -> None:
    """The number of running calls changes together with the list, when a call begins and when it ends."""
    running = asyncio.ensure_future(call_tool(store, "export_orders"))
    await counter.until(f"{ROWS}[0]?.innerText.includes('running')")
    assert await counter.text("#running") == "1 running"
    assert "1 of 10,000" in await counter.evaluate("document.querySelector('#limits').textContent")
    Finish.event.set()
    await running
    await counter.until(f"{ROWS}[0].innerText.includes('ok')")
    assert await counter.text("#running") == ""
    assert "0 of 10,000" in await counter.evaluate("document.querySelector('#limits').textContent")


async def test_filter_and_export(counter: Page, browser: Browser, store: ConsoleServer, tmp_path: Path) -> None:
    """Calls can be filtered by any word, and those that are shown are exported as JSON lines."""
    await call_tool(store, "get_order", number=7)
    await call_tool(store, "get_order", number=9999)
    await call_tool(store, "search_products", query="moss", tenant="eu")
    await counter.until(f"{ROWS}[0]?.innerText.includes('search_products')")
    await counter.evaluate("document.querySelector('#call-filter').focus()")
    await counter.write("get_ error")
    await counter.until(f"[...{ROWS}].every((one) => one.innerText.includes('get_order'))")
    shown = await counter.evaluate(f"{ROWS}.length")
    assert shown >= 1
    await counter.allow_downloads(tmp_path)
    await counter.tab_to("Export", most=2)
    await counter.press("Enter")
    records = [json.loads(line) for line in (await browser.downloaded()).splitlines()]
    assert len(records) == shown
    assert {(one["name"], one["outcome"]) for one in records} == {("get_order", "error")}
    assert records[-1]["arguments"] == {"number": 9999}
    await counter.evaluate("document.querySelector('#call-filter').focus()")
    await enter(counter, "nothing like this")
    assert "No call matches the filter." in await counter.until("document.querySelector('#calls-note').innerText")


async def test_addresses(counter: Page, store: ConsoleServer) -> None:
    """Each feature has an address, which survives a reload; the back button returns to the previous feature."""
    await choose(counter, "get_order")
    await choose(counter, "shop://orders")
    assert await counter.evaluate("location.hash") == "#/resources/shop%3A%2F%2Forders%2F%7Bnumber%7D%2F%7Bpart%7D"
    shown = "document.querySelector('.panel')?.dataset.key"
    await counter.evaluate("history.back()")
    await counter.until(f"{shown} === 'tool get_order'")
    await counter.evaluate("history.forward()")
    await counter.until(f"{shown}?.startsWith('resource shop://orders')")
    await counter.goto("about:blank")
    await counter.goto(f"{store.url}/console#/prompts/draft_reply")
    await counter.until(f"{shown} === 'prompt draft_reply'")
    await counter.goto("about:blank")
    await counter.goto(f"{store.url}/console#/tools/no_such_tool")
    await counter.until(f"{shown} !== undefined")


async def test_groups(counter: Page) -> None:
    """The list is grouped by tool set, with one line per feature; the panel shows title, name, kind and tool set."""
    headings = await counter.evaluate("[...document.querySelectorAll('#offer h2')].map((one) => one.innerText)")
    assert [" ".join(one.split()) for one in headings] == [
        "Tools orders 4",
        "Tools catalogue 2",
        "Tools users 1",
        "Prompts 1",
        "Resources 1",
        "Resource templates 1",
    ]
    assert (
        await counter.evaluate("Math.max(...[...document.querySelectorAll('.entry')].map((one) => one.offsetHeight))")
        < 36
    )
    await choose(counter, "place_order")
    assert await counter.text(".panel h2") == "Place an order"
    assert await counter.text(".panel .name") == "place_order"
    assert await counter.evaluate("[...document.querySelectorAll('.panel .badge')].map((one) => one.innerText)") == [
        "tool",
        "orders",
    ]


async def test_the_list_can_be_filtered(counter: Page) -> None:
    """The list of features is filtered by name, title, tool set and description."""
    await counter.tab_to("Search features")
    names = "[...document.querySelectorAll('.entry')].map((one) => one.innerText).join()"
    for words, found in (("catalogue", "search_products,dump"), ("refund", "cancel_order"), ("zzz", "")):
        await enter(counter, words)
        await counter.until(f"{names} === {json.dumps(found)}")
    assert await counter.text("#offer") == "No matches."


async def test_result_beside_the_form(counter: Page) -> None:
    """Form, result and calls are visible at the same time, and the header stays visible."""
    await choose(counter, "place_order")
    boxes = ".map((one) => document.querySelector(one).getBoundingClientRect().toJSON())"
    left, right, dock, top = await counter.evaluate(f"['.input', '.output', '.dock', '.top']{boxes}")
    assert left["right"] <= right["left"] + 1
    assert left["top"] == right["top"]
    assert dock["bottom"] <= 900
    assert top["top"] == 0
    await counter.look_like(width=420)
    await choose(counter, "place_order")
    assert await counter.evaluate("document.querySelector('.top').getBoundingClientRect().top") == 0


async def test_history(counter: Page) -> None:
    """Earlier arguments can be chosen again, without sensitive values, and only the latest are kept."""
    await counter.evaluate("sessionStorage.clear()")
    await choose(counter, "change_password")
    for number in range(10):
        await counter.evaluate("document.querySelector('.arguments input').focus()")
        await enter(counter, f"user{number}")
        await counter.tab_to("password", most=1)
        await enter(counter, "hunter2-hunter2")
        await counter.press("Enter")
        await counter.until(f"document.querySelector('.panel .result').innerText.includes('of user{number} has')")
    stored = json.loads(await counter.evaluate("sessionStorage.getItem('axolotl-arguments')"))
    assert stored == [
        ["tool change_password", [json.dumps({"user": f"user{n}"}, separators=(",", ":")) for n in range(9, 1, -1)]]
    ]
    await counter.tab_to("Earlier arguments")
    await counter.press("ArrowDown")
    await counter.press("ArrowDown")
    await counter.until("document.querySelector('.arguments input').value === 'user9'")
    assert await counter.evaluate("document.querySelector('.arguments input[type=password]').value") == ""


async def run(directory: Path, *command: str) -> str:
    """Run a command, and return what it prints."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=directory, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await process.communicate()
    return printed.decode()


@pytest.mark.slow
async def test_copies(counter: Page, tmp_path: Path) -> None:
    """A call is copied as a curl command, as `axolotl call` and as a test, which all work when they are run."""
    await counter.allow_clipboard()
    await choose(counter, "search_products")
    await counter.write("filter")
    await counter.tab_to("send tenant", most=1)
    await counter.tab_to("tenant", most=1)
    tenant = "it's “eu”; $HOME `id` \\"
    await enter(counter, tenant)
    curl = await copied(counter, "curl")
    assert "-H 'Mcp-Param-Tenant: =?base64?" in curl
    answer = json.loads(await run(tmp_path, "sh", "-c", curl))
    assert answer["result"]["structuredContent"] == [f"{tenant}: Water filter"]
    command = await copied(counter, "axolotl call")
    assert command.startswith("axolotl call tests.browser.shop:Container search_products ")
    result = json.loads(await run(tmp_path, "sh", "-c", f"{command} --json"))
    assert result["structuredContent"] == [f"{tenant}: Water filter"]
    test = tmp_path / "test_copied.py"
    test.write_text(await copied(counter, "pytest"))
    printed = await run(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test))
    assert "1 passed" in printed, f"{test.read_text()}\n{printed}"


@pytest.mark.slow
async def test_copies_of_prompts_and_resources(counter: Page, tmp_path: Path) -> None:
    """Prompts and resources are copied in the same way."""
    await counter.allow_clipboard()
    for number, name in enumerate(("draft_reply", "shop://policies/returns", "shop://orders")):
        await choose(counter, name)
        if name != "shop://policies/returns":
            await counter.write("1042")
            await counter.tab_to("tone" if name == "draft_reply" else "part", most=1)
            await counter.press("ArrowDown")
        assert '"result"' in await run(tmp_path, "sh", "-c", await copied(counter, "curl"))
        (tmp_path / f"test_{number}.py").write_text(await copied(counter, "pytest"))
        printed = await run(tmp_path, "sh", "-c", await copied(counter, "axolotl call"))
        assert ("formal reply about order 1042", "Within 30 days", "The address of order 1042")[number] in printed
    printed = await run(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert "3 passed" in printed, printed


async def test_copies_hide_secrets(counter: Page) -> None:
    """Sensitive values are replaced by placeholders in copies."""
    await counter.allow_clipboard()
    await choose(counter, "change_password")
    await counter.write("ada")
    await counter.tab_to("password", most=1)
    await counter.write("hunter2-hunter2")
    for name in ("curl", "axolotl call", "pytest"):
        text = await copied(counter, name)
        assert "hunter2" not in text
        assert "<password>" in text


async def test_long_results(counter: Page, browser: Browser, tmp_path: Path) -> None:
    """A long result is shown in part and can be downloaded."""
    await choose(counter, "dump")
    await counter.write("300000")
    await counter.press("Enter")
    await outcome(counter, "ok")
    assert await counter.evaluate("document.querySelector('.answer pre').innerText.length") == 100_001
    await counter.allow_downloads(tmp_path)
    await counter.tab_to("Download all 293 KiB")
    await counter.press("Enter")
    assert await browser.downloaded() == "x" * 300_000


async def test_many_calls(counter: Page, store: ConsoleServer) -> None:
    """The page keeps the latest calls only."""
    async with httpx2.AsyncClient() as other:
        for number in range(1, 221):
            await other.post(
                f"{store.url}/mcp", content=call("get_order", {"number": number}), headers=mirrored(name="get_order")
            )
    await counter.until("document.querySelectorAll('#calls tbody tr').length === 200")


async def test_tabs(counter: Page) -> None:
    """The activity has tabs, which are changed with the arrow keys."""
    await counter.evaluate("document.querySelector('[role=tab][aria-selected=true]').focus()")
    await counter.press("ArrowRight")
    assert await counter.focused() == "Tasks"
    await counter.press("ArrowRight")
    assert await counter.focused() == "Latency"
    visible = "[...document.querySelectorAll('[role=tabpanel]:not([hidden])')].map((one) => one.id)"
    assert await counter.evaluate(visible) == ["latency-panel"]
    await counter.press("ArrowRight")
    assert "axolotl-console" in await counter.text("#sessions")
