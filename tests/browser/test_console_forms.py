"""Forms of the console: fields, checks before sending, and errors of the server at their fields."""

import json
from typing import Any

import pytest

from tests.browser.chromium import Page
from tests.browser.shop import Finish
from tests.browser.steps import WEAKEST_CONTRAST, choose, enter, errors, outcome, structured

pytestmark = pytest.mark.asyncio(loop_scope="module")

VALID = {"number": "7", "customer": "Ada", "sku": "AX-0042", "quantity": "5", "password": "12345678"}
CONTROL = """(() => {
    const labels = [...document.querySelectorAll('.panel .label')];
    const label = labels.find((one) => one.querySelector('bdi')?.innerText === NAME);
    const one = document.getElementById(label.htmlFor);
    return { tag: one.tagName, type: one.type, placeholder: one.placeholder, value: one.value,
        options: [...(one.options ?? [])].map((option) => option.text) };
})()"""


async def control(page: Page, name: str) -> dict[str, Any]:
    """Describe the control of a field."""
    found = await page.evaluate(CONTROL.replace("NAME", json.dumps(name)))
    assert isinstance(found, dict)
    return found


async def test_kinds_of_text(counter: Page) -> None:
    """Texts are single-line inputs with an example as placeholder, and sensitive texts are password inputs."""
    await choose(counter, "change_password")
    user, password = await control(counter, "user"), await control(counter, "password")
    assert (user["tag"], user["type"]) == ("INPUT", "text")
    assert (password["tag"], password["type"], password["placeholder"]) == ("INPUT", "password", "")
    await choose(counter, "search_products")
    assert (await control(counter, "query"))["placeholder"] == "e.g. filter"
    await choose(counter, "get_order")
    assert (await control(counter, "number"))["placeholder"] == "e.g. 1042"


async def test_a_password_can_be_shown(counter: Page) -> None:
    """A sensitive value can be shown and hidden, and is sent as entered."""
    await choose(counter, "change_password")
    await counter.write("ada")
    await counter.tab_to("password", most=1)
    await counter.write("12345678")
    await counter.tab_to("Show password", most=1)
    await counter.press("Enter")
    assert (await control(counter, "password"))["type"] == "text"
    await counter.press("Enter")
    assert (await control(counter, "password"))["type"] == "password"
    await counter.tab_to("Call")
    await counter.press("Enter")
    assert "The password of ada has 8 characters." in await outcome(counter, "ok")


async def test_secrets_as_json(counter: Page) -> None:
    """JSON shows placeholders for sensitive values, which are sent as they were entered in the form."""
    await choose(counter, "change_password")
    await counter.write("ada")
    await counter.tab_to("password", most=1)
    await counter.write("hunter2-hunter2")
    await counter.evaluate("document.querySelector('.panel .heading button').focus()")
    await counter.press("Enter")
    shown = "document.querySelector('.arguments textarea').value"
    assert json.loads(await counter.evaluate(shown)) == {"user": "ada", "password": "<password>"}
    await counter.evaluate("document.querySelector('.arguments textarea').focus()")
    await enter(counter, '{"user": "bob", "password": "<password>"}')
    await counter.tab_to("Call")
    await counter.press("Enter")
    assert "The password of bob has 15 characters." in await outcome(counter, "ok")


async def test_lists_of_sensitive_values(counter: Page) -> None:
    """The parts of a sensitive value are sensitive, too."""
    await choose(counter, "change_password")
    await counter.tab_to("send hints")
    await counter.press("Space")
    await counter.tab_to("Add an item")
    await counter.press("Enter")
    assert (await control(counter, "1"))["type"] == "password"


async def test_line_breaks(counter: Page) -> None:
    """Shift+Enter turns an input into a text area with the same label, and the line break is sent."""
    await choose(counter, "search_products")
    await counter.write("one")
    await counter.press("Enter", shift=True)
    await counter.write("two")
    assert (await control(counter, "query"))["value"] == "one\ntwo"
    assert "query" in await counter.focused()
    await counter.press("Enter")
    await outcome(counter, "ok")


async def test_everything_that_is_missing_is_marked(counter: Page) -> None:
    """All required fields are marked at once, nothing is sent, and the first one gets the focus."""
    await choose(counter, "place_order")
    await counter.press("Enter")
    await counter.until("document.activeElement.getAttribute('aria-invalid') === 'true'")
    assert await errors(counter) == {
        "customer": "This is required.",
        "sku": "This is required.",
        "quantity": "This is required.",
        "number": "This is required.",
        "year": "This is required.",
    }
    assert "customer" in await counter.focused()
    assert "5 fields need your attention." in await counter.text(".panel .error[role=alert]")
    assert await counter.text(".panel .status") == ""


@pytest.mark.parametrize(
    ("name", "field", "entered", "message"),
    [
        ("get_order", "number", "0", "Must be 1 or more."),
        ("get_order", "number", "10000", "Must be 9999 or less."),
        ("get_order", "number", "99999999999999999999", "Must be 9999 or less."),
        ("get_order", "number", "1.5", "Enter an integer, such as 12."),
        ("place_order", "customer", "x" * 41, "Must have at most 40 characters, has 41."),
        ("place_order", "sku", "AX-42", "Must match the pattern ^[A-Z]{2}-[0-9]{4}$."),
        ("place_order", "quantity", "1001", "Must be 1000 or less."),
        ("change_password", "password", "1234567", "Must have at least 8 characters."),
    ],
)
async def test_checks_before_sending(counter: Page, name: str, field: str, entered: str, message: str) -> None:
    """A value that the schema excludes is marked before sending, and the mark goes away with the mistake."""
    await choose(counter, name)
    if field not in await counter.focused():
        await counter.tab_to(field)
    await counter.write(entered)
    await counter.press("Enter")
    await counter.until("document.querySelector('.panel [aria-invalid=true]')")
    assert (await errors(counter))[field] == message
    assert await counter.text(".panel .status") == ""
    while field not in await counter.focused():
        await counter.press("Tab")
    await enter(counter, VALID[field])
    assert message not in (await errors(counter)).values()


async def test_the_number_of_items(counter: Page) -> None:
    """A list with too many items is marked as a whole."""
    await choose(counter, "place_order")
    for _ in range(3):
        await counter.tab_to("Add an item")
        await counter.press("Enter")
    await counter.evaluate(
        "document.querySelectorAll('.panel fieldset fieldset').forEach((one) => { const [sku, quantity] ="
        " one.querySelectorAll('input'); sku.value = 'AX-0042'; quantity.value = '1'; })"
    )
    await counter.press("Enter")
    await counter.until("document.querySelector('.panel fieldset.invalid')")
    assert (await errors(counter))["lines"] == "Must have at most 3 items, has 4."


async def place_order(page: Page, **values: str) -> None:
    """Fill in the form of an order by its labels, and send it."""
    await choose(page, "place_order")
    for name, value in values.items():
        while name not in await page.focused():
            await page.press("Tab")
        await page.write(value)
    await page.press("Enter")


async def test_errors_of_the_server(counter: Page) -> None:
    """A validation error of the server is shown at the field that its path names, in lists and unions too."""
    await place_order(counter, customer="Ada", sku="AX-9999", quantity="2", number="4711", year="2020")
    await outcome(counter, "error")
    assert await errors(counter) == {"sku": "there is no product AX-9999", "year": "the card has expired"}
    assert "sku" in await counter.focused()
    assert "2 fields need your attention." in await counter.text(".panel .error[role=alert]")
    await enter(counter, "AX-0042")
    assert "sku" not in await errors(counter)
    await counter.tab_to("year")
    await enter(counter, "2030")
    await counter.press("Enter")
    await outcome(counter, "ok")
    assert await errors(counter) == {}
    assert (await structured(counter))["lines"] == [{"sku": "AX-0042", "quantity": 2}]


async def test_decimals(page: Page) -> None:
    """A decimal is one field, which is checked as a number, and keeps the digits that a double would change."""
    await choose(page, "price")
    kinds = "[...document.querySelectorAll('.panel .arguments fieldset > legend bdi')].map((one) => one.innerText)"
    assert await page.evaluate(kinds) == ["label"]
    await page.write("-1")
    await page.press("Enter")
    assert (await errors(page))["amount"] == "Must be 0 or more."
    await enter(page, "1.50")
    await page.tab_to("send discount", most=1)
    await page.tab_to("discount", most=1)
    await page.write("12345678901234567890.01")
    await page.press("Enter")
    await outcome(page, "ok")
    assert await structured(page) == ["1.50", "12345678901234567890.01"]
    await enter(page, "much")
    await page.press("Enter")
    await outcome(page, "error")
    assert "valid decimal" in (await errors(page))["discount"]


@pytest.mark.parametrize("width", [390, 1280])
async def test_the_button_of_an_item_covers_nothing(counter: Page, width: int) -> None:
    """The button that removes an object from a list covers neither its name nor its fields."""
    await counter.look_like(width=width)
    await choose(counter, "place_order")
    covered = await counter.evaluate(
        """(() => {
            const { left, top, right, bottom } = document.querySelector('.remove button').getBoundingClientRect();
            const texts = document.querySelectorAll('.panel .row :is(legend bdi, .hint, .label, .limits, input)');
            const covers = (box) => box.left < right && box.right > left && box.top < bottom && box.bottom > top;
            return [...texts].filter((one) => [...one.getClientRects()].some(covers)).map((one) => one.innerText);
        })()"""
    )
    assert covered == []


async def test_errors_without_a_field(counter: Page) -> None:
    """A problem with something that is not in the form is shown below the form."""
    await choose(counter, "get_order")
    await counter.tab_to("Write JSON", most=80)
    await counter.press("Enter")
    await counter.evaluate("document.querySelector('.arguments textarea').focus()")
    await enter(counter, '{"number": 1, "nmae": 2}')
    await counter.tab_to("Call")
    await counter.press("Enter")
    assert "nmae: unknown argument" in await outcome(counter, "error")


async def test_choices_of_prompts(counter: Page) -> None:
    """A prompt argument with certain values is a choice; one with completions suggests values while typing."""
    await choose(counter, "draft_reply")
    assert (await control(counter, "tone"))["options"] == ["Choose…", "formal", "friendly", "brief"]
    assert (await control(counter, "urgent"))["options"] == ["Choose…", "true", "false"]
    suggestions = "[...document.activeElement.list.options].map((one) => one.value).join()"
    assert await counter.until(f"{suggestions} === '1042,1043,2001'")
    await counter.write("104")
    assert await counter.until(f"{suggestions} === '1042,1043'")
    await counter.tab_to("tone", most=1)
    await counter.press("ArrowDown")
    await counter.press("Enter")
    assert "Write a formal reply about order 104." in await outcome(counter, "ok")


async def test_variables_of_templates(counter: Page) -> None:
    """A resource template has a field for each variable."""
    await choose(counter, "shop://orders")
    assert (await control(counter, "part"))["options"] == ["Choose…", "address", "lines"]
    await counter.write("7")
    await counter.tab_to("part", most=1)
    await counter.press("ArrowDown")
    await counter.press("Enter")
    assert "The address of order 7." in await outcome(counter, "ok")


async def test_approval(counter: Page) -> None:
    """An approval has the buttons Approve and Decline, and the key that started the call approves nothing."""
    await choose(counter, "cancel_order")
    await counter.write("1042")
    await counter.tab_to("reason", most=1)
    await counter.press("ArrowDown")
    await counter.press("Enter")
    await counter.until("document.querySelector('.question')")
    labels = "[...document.querySelectorAll('.question button')].map((one) => one.innerText)"
    assert await counter.evaluate(labels) == ["Approve", "Decline"]
    assert await counter.evaluate("document.querySelectorAll('.question input').length") == 0
    assert "number: 1042" in await counter.text(".question")
    await counter.press("Enter")
    assert await counter.evaluate("document.activeElement.closest('.question') !== null")
    await counter.tab_to("Approve", most=1)
    await counter.press("Enter")
    assert "Order 1042 is cancelled (customer)." in await outcome(counter, "ok")
    assert await counter.focused() == "Call"
    await counter.press("Enter")
    await counter.until("document.querySelector('.question')")
    await counter.tab_to("Decline", most=2)
    await counter.press("Enter")
    assert "did not approve" in await outcome(counter, "error")


async def test_progress_ends_with_the_result(counter: Page) -> None:
    """A progress bar without a total is shown while the call runs, and is gone when it has ended."""
    await choose(counter, "export_orders")
    await counter.press("Enter")
    await counter.until("document.querySelector('.panel .progress')?.innerText.includes('shard 3')")
    bar = "(() => { const one = document.querySelector('.panel progress'); return [one.hidden, one.position]; })()"
    assert await counter.evaluate(bar) == [False, -1]
    Finish.event.set()
    await outcome(counter, "ok")
    assert (await counter.evaluate(bar))[0] is True


@pytest.mark.parametrize("dark", [False, True])
async def test_contrast_of_states(counter: Page, dark: bool) -> None:
    """Errors, badges, questions and details have enough contrast, in light and dark mode."""
    await counter.look_like(width=1400, dark=dark)
    await place_order(counter, customer="Ada", sku="AX-9999", quantity="2", number="4711", year="2020")
    await outcome(counter, "error")
    await counter.until("document.querySelector('#calls tr[data-kind=tool]')?.innerText.includes('invalid')")
    await counter.evaluate("document.querySelector('#calls tr[data-kind=tool] button').click()")
    assert await counter.evaluate(WEAKEST_CONTRAST) >= 4.5
    await choose(counter, "cancel_order")
    await counter.write("1042")
    await counter.tab_to("reason", most=1)
    await counter.press("ArrowDown")
    await counter.press("Enter")
    await counter.until("document.querySelector('.question')")
    assert await counter.evaluate(WEAKEST_CONTRAST) >= 4.5


async def test_units(counter: Page) -> None:
    """Limits and ranges are written for people."""
    await choose(counter, "get_order")
    assert "1 to 9999" in await counter.text(".arguments .limits")
    await choose(counter, "export_orders")
    await counter.evaluate("document.querySelector('.effects').open = true")
    assert "1 min 30 s" in await counter.text(".effects")
    limits = await counter.evaluate("document.querySelector('#limits').textContent")
    assert "4 MiB" in limits
    assert "of 10,000" in limits
