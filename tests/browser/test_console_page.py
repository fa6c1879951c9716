"""The console in a real browser, used only with the keyboard."""

import json

import pytest
from dependency_injector import containers, providers

from axolotl_core import tool
from tests.browser.chromium import Browser, Page
from tests.browser.sample import HOSTILE, Container, contents, greet, wait
from tests.browser.sample import page as handbook_page
from tests.browser.steps import WEAKEST_CONTRAST, choose, open_console, outcome, structured
from tests.support.servers.console_server import console_of, serving_console

pytestmark = pytest.mark.asyncio(loop_scope="module")


@tool
async def added() -> str:
    """Come later."""
    return "here"


async def test_a_call_by_keyboard(page: Page) -> None:
    """A tool can be found, filled in and called with the keyboard, and its result is announced to screen readers."""
    await choose(page, "greet")
    assert "name" in await page.focused()
    await page.write("Ada")
    await page.press("Enter")
    assert "Hello, Ada!" in await outcome(page, "ok")
    live = "document.querySelector('.panel .result').closest('[aria-live]').getAttribute('aria-live')"
    assert await page.evaluate(live) == "polite"
    await page.tab_to("loud", most=2)
    await page.press("ArrowDown")
    await page.tab_to("Call", most=2)
    await page.press("Space")
    await page.until("document.querySelector('.panel .result').innerText.includes('HELLO, Ada!')")
    assert page.complaints == []


async def test_errors(page: Page) -> None:
    """Tool errors and hidden failures are shown as errors."""
    await choose(page, "complain")
    await page.press("Enter")
    assert "This is not my day." in await outcome(page, "error")
    await choose(page, "crash")
    await page.press("Enter")
    shown = await outcome(page, "error")
    assert "Reference" in shown
    assert "the secret" not in shown


async def test_invalid_input_is_marked(page: Page) -> None:
    """An invalid number is rejected before sending; its field shows the reason and gets the focus."""
    await choose(page, "order")
    await page.write("four")
    await page.press("Enter")
    await page.until("document.activeElement.getAttribute('aria-invalid') === 'true'")
    assert "people" in await page.focused()
    described = await page.evaluate(
        "document.activeElement.getAttribute('aria-describedby').split(' ')"
        ".map((id) => document.getElementById(id).innerText).join(' ')"
    )
    assert "Enter an integer" in described
    assert await page.text(".panel .status") == ""


async def test_every_kind_of_field(page: Page) -> None:
    """Numbers, choices, dates, unions, objects, lists and maps can be entered with the keyboard."""
    await choose(page, "order")
    await page.say("Input.dispatchKeyEvent", type="keyDown", commands=["selectAll"])
    await page.write("4")
    await page.tab_to("size", most=1)
    await page.press("ArrowDown")
    await page.press("ArrowDown")
    await page.tab_to("day", most=1)
    for part in ("12", "31", "2026"):
        for digit in part:
            await page.say("Input.dispatchKeyEvent", type="char", text=digit)
    await page.tab_to("Kind")
    await page.press("ArrowDown")
    await page.tab_to("change")
    await page.press("ArrowDown")
    await page.tab_to("street")
    await page.write("Lake Road 1")
    await page.tab_to("olives")
    await page.press("Space")
    await page.tab_to("send notes")
    await page.press("Space")
    await page.tab_to("Add an item")
    await page.press("Enter")
    await page.write("no salt")
    await page.press("Enter")
    await outcome(page, "ok")
    assert await structured(page) == {
        "people": 4,
        "size": "large",
        "day": "2026-12-31",
        "payment": {"kind": "cash", "change": True},
        "extras": ["olives"],
        "notes": ["no salt"],
    }


async def test_recursive_schemas(page: Page) -> None:
    """Recursive objects can be entered to any depth."""
    await choose(page, "grow")
    await page.write("root")
    await page.tab_to("Add child", most=3)
    await page.press("Enter")
    await page.tab_to("name", most=3)
    await page.write("leaf")
    await page.press("Enter")
    assert "2" in await outcome(page, "ok")


async def test_json_instead(page: Page) -> None:
    """Arguments can be entered as JSON and converted back to the form, and numbers stay exact."""
    await choose(page, "greet")
    await page.say("Input.dispatchKeyEvent", type="keyDown", commands=["selectAll"])
    await page.write("Bob")
    await page.tab_to("Write JSON")
    await page.press("Enter")
    assert (
        json.loads(await page.evaluate("document.querySelector('.arguments input, .arguments textarea').value"))["name"]
        == "Bob"
    )
    await page.evaluate("document.querySelector('.arguments input, .arguments textarea').select()")
    await page.evaluate("document.querySelector('.arguments input, .arguments textarea').focus()")
    await page.write('{"name": "Eve", "loud": true}')
    await page.tab_to("Use the form")
    await page.press("Enter")
    assert await page.evaluate("document.querySelector('.arguments input, .arguments textarea').value") == "Eve"
    await choose(page, "number")
    await page.press("Enter")
    assert "12345678901234567890" in await outcome(page, "ok")


async def test_a_question(page: Page) -> None:
    """A question opens a form, which gets the focus; after the answer, the call ends."""
    await choose(page, "book")
    await page.write("AX 7")
    await page.press("Enter")
    await page.until("document.querySelector('.question')")
    assert "How do you want to fly with AX 7?" in await page.text(".question")
    assert await page.text(".panel .status") == "Waiting for your answer…"
    assert "kind" in await page.focused()
    await page.press("ArrowDown")
    await page.press("ArrowDown")
    await page.tab_to("Answer")
    await page.press("Enter")
    assert "AX 7, aisle, 0 bags" in await outcome(page, "ok")


async def test_a_question_declined(page: Page) -> None:
    """A question can be declined."""
    await choose(page, "book")
    await page.write("AX 7")
    await page.press("Enter")
    await page.until("document.querySelector('.question')")
    await page.tab_to("Decline")
    await page.press("Enter")
    assert "declined" in await outcome(page, "error")


async def test_progress_and_cancel(page: Page) -> None:
    """Progress and log messages are shown during a call, and Escape cancels it."""
    await choose(page, "wait")
    await page.press("Enter")
    await page.until("document.querySelector('.panel .log')?.innerText.includes('waiting for you')")
    assert "one of four" in await page.text(".panel .progress")
    assert await page.evaluate("document.querySelector('.panel progress').value") == 1
    await page.press("Escape")
    await outcome(page, "cancelled")
    await page.until("document.querySelector('#calls tr[data-kind=tool]')?.innerText.includes('cancelled')")


async def test_pictures(page: Page) -> None:
    """Images are displayed."""
    await choose(page, "paint")
    await page.press("Enter")
    assert "An axolotl in the mist." in await outcome(page, "ok")
    await page.until("document.querySelector('.result img')?.naturalWidth === 48")
    assert page.complaints == []


async def test_prompts_and_resources(page: Page) -> None:
    """Prompts and resources can be tried in the same way."""
    await choose(page, "review")
    await page.write("Python")
    await page.press("Enter")
    assert "Review this Python code." in await outcome(page, "ok")
    await choose(page, "handbook://contents")
    await page.press("Enter")
    assert "1, 2" in await outcome(page, "ok")
    await choose(page, "handbook://pages")
    await page.write("2")
    await page.press("Enter")
    assert "This is page 2." in await outcome(page, "ok")


async def test_html_is_escaped(page: Page) -> None:
    """Names, descriptions, choices and results that contain HTML are shown as text."""
    await choose(page, "hostile")
    await page.press("ArrowDown")
    await page.press("Enter")
    assert HOSTILE in await outcome(page, "ok")
    assert HOSTILE in await page.text(".panel .description")
    title, elements = await page.evaluate("[document.title, document.querySelectorAll('main :is(img, script)').length]")
    assert title == "kitchen – console"
    assert elements == 0
    assert page.complaints == []


async def test_names_that_objects_inherit(page: Page) -> None:
    """Tools and arguments can have names of built-in object members."""
    await choose(page, "constructor")
    await page.write("a")
    await page.tab_to("send __proto__", most=1)
    await page.tab_to("__proto__", most=1)
    await page.write("b")
    await page.press("Enter")
    await outcome(page, "ok")
    assert await structured(page) == {"constructor": "a", "__proto__": "b"}
    assert "validation" in await page.evaluate("document.querySelector('.effects').textContent")
    assert page.complaints == []


async def test_a_schema_without_end(page: Page) -> None:
    """The form of an infinitely recursive schema has a limited size."""
    await choose(page, "maze")
    assert await page.evaluate("document.querySelectorAll('.panel *').length") < 20_000


async def test_html_cannot_be_written(page: Page) -> None:
    """The security policy of the page forbids HTML injection and foreign scripts."""
    forbidden = (
        "(() => { try { document.body.innerHTML = '<b>'; return 'written'; } catch (error) { return error.name; } })()"
    )
    assert await page.evaluate(forbidden) == "TypeError"
    inline = "(() => { const one = document.createElement('script'); one.src = 'data:text/javascript,1'; })()"
    with pytest.raises(AssertionError, match="TrustedScriptURL"):
        await page.evaluate(inline)


async def test_limits_are_shown(page: Page) -> None:
    """The effective limits and the layers of a tool are shown."""
    await choose(page, "order")
    await page.evaluate("document.querySelector('.effects').open = true")
    shown = await page.text(".effects")
    assert "2, no queue" in shown
    assert "validation → timeout → ConcurrencyLayer" in shown


async def test_focus_is_seen(page: Page) -> None:
    """The focused element has a visible outline, and every control has a name."""
    await choose(page, "order")
    seen = set[str]()
    for _ in range(60):
        await page.press("Tab")
        name = await page.focused()
        if name in ("BODY", "MAIN"):
            continue
        assert name not in ("INPUT", "SELECT", "TEXTAREA", "BUTTON", "DIV"), f"without a name, after {seen}"
        seen.add(name)
        width = await page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 2, name
    assert len(seen) > 15


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("dark", [False, True])
async def test_fits_every_width(page: Page, width: int, dark: bool) -> None:
    """The page fits narrow screens and has enough contrast, in light and dark mode."""
    await page.look_like(width=width, dark=dark)
    for name in ("order", "hostile"):
        await choose(page, name)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await page.evaluate(WEAKEST_CONTRAST) >= 4.5


async def test_list_of_features(browser: Browser) -> None:
    """The list shows the URIs of resources, and names of tool sets are not broken within a word."""

    class Reading(containers.DeclarativeContainer):
        resources = providers.Aggregate(
            reading=providers.List(providers.Object(contents), providers.Object(handbook_page))
        )

    async with serving_console(Reading()) as server:
        shown = await open_console(await browser.new_page(), server.link)
        await shown.look_like(width=1280)
        entries = "[...document.querySelectorAll('.entry')].map((one) => one.innerText)"
        assert await shown.evaluate(entries) == ["handbook://contents", "handbook://pages/{number}"]
        lines = "[...document.querySelectorAll('.offer .toolset bdi')].map((one) => one.getClientRects().length)"
        assert await shown.evaluate(lines) == [1, 1]


class Larger(Container):
    """The sample with one more tool."""

    tools = providers.List(*map(providers.Object, (greet, wait, added)))


async def test_a_restart(browser: Browser) -> None:
    """After a restart of the server, the page reconnects, shows the new features, and keeps the entered values."""
    page = await browser.new_page()
    async with serving_console(Container()) as before:
        await page.goto(before.link)
        await page.until("document.querySelectorAll('.entry').length >= 13")
        await choose(page, "greet")
        await page.write("half a na")
        console_of(before.host).set_problem("SyntaxError: invalid syntax")
        await page.until("document.querySelector('#problem')?.innerText.includes('invalid syntax')")
        await page.evaluate("document.querySelector('#search').value = ''")
        await page.evaluate("document.querySelector('#search').dispatchEvent(new Event('input'))")
        port = before.port
    await page.until("document.querySelector('#connection').dataset.state === 'away'")
    async with serving_console(Larger(), port=port):
        await page.until("[...document.querySelectorAll('.entry')].some((one) => one.innerText.startsWith('added'))")
        assert (
            await page.evaluate("document.querySelector('.arguments input, .arguments textarea').value") == "half a na"
        )
        assert await page.evaluate("document.querySelector('#problem').hidden")
        assert await page.evaluate("document.querySelectorAll('.entry').length") == 6
    assert page.complaints == []
