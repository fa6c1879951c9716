"""Steps of a person who uses the console with the keyboard."""

import json
from typing import Any

from tests.browser.chromium import Page


async def choose(page: Page, name: str) -> None:
    """Find a feature by typing and open it with Enter, which moves the focus to its form."""
    await page.evaluate("document.activeElement.blur()")
    await page.tab_to("Search features")
    await enter(page, name)
    await page.until(f"document.querySelector('.entry')?.dataset.key.includes({json.dumps(name)})")
    await page.press("Tab")
    await page.press("Enter")
    await page.until(f"document.querySelector('.panel')?.dataset.key.includes({json.dumps(name)})")


async def enter(page: Page, text: str) -> None:
    """Replace the content of the focused field."""
    await page.say("Input.dispatchKeyEvent", type="keyDown", commands=["selectAll"])
    await page.write(text)


async def outcome(page: Page, word: str) -> str:
    """Wait until the latest call has a certain outcome, and return its result."""
    await page.until(f"document.querySelector('.panel .status').dataset.outcome === {json.dumps(word)}")
    return await page.text(".panel .result")


async def structured(page: Page) -> Any:
    """Return the structured content of the result."""
    return json.loads(await page.text(".panel .result pre.code"))


async def errors(page: Page) -> dict[str, str]:
    """Return the messages at the fields that are marked as invalid, by the name of the field."""
    found = await page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.panel :is([aria-invalid=true], .invalid)')].map((one) => {
            const name = one.labels?.[0] ?? one.querySelector('legend');
            const error = one.getAttribute('aria-describedby').split(' ').at(-1);
            return [name.querySelector('bdi').innerText, document.getElementById(error).innerText];
        }))"""
    )
    assert isinstance(found, dict)
    return found


async def copied(page: Page, name: str) -> str:
    """Copy the call in the form, and return the clipboard."""
    await page.tab_to(f"Copy as {name}")
    await page.press("Enter")
    await page.until("document.querySelector('.panel .copy [role=status]').innerText === 'Copied.'")
    return str(await page.evaluate("navigator.clipboard.readText()"))


async def open_console(page: Page, link: str) -> Page:
    """Open the console with a link, and wait until its features are listed."""
    page.complaints.clear()
    await page.look_like(width=1400)
    await page.goto("about:blank")  # a link that differs only after the # loads nothing
    await page.goto(link)
    await page.until("document.querySelectorAll('.entry').length > 0 && document.querySelector('.panel')")
    return page


WEAKEST_CONTRAST = """(() => {
    const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const linear = (one) => one <= .03928 ? one / 12.92 : ((one + .055) / 1.055) ** 2.4;
        const [x, y, z] = [r, g, b].map((one) => linear(one / 255));
        return .2126 * x + .7152 * y + .0722 * z;
    };
    const ground = (one) => {
        for (let place = one; place; place = place.parentElement) {
            const colour = numbers(getComputedStyle(place).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()
        && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
    const ratios = texts.map((one) => {
        const [a, b] = [light(numbers(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
        return (a + .05) / (b + .05);
    });
    return Math.min(...ratios);
})()"""
"""The lowest contrast between a visible text and what is behind it."""
