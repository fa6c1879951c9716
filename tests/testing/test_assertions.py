"""The assertions and their messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import ToolError, prompt, resource, tool
from axolotl_testing import ClientFactory, as_principal, assert_refused, assert_result, assert_tool_error


class Line(BaseModel):
    item: str
    amount: int


class Order(BaseModel):
    number: int
    lines: list[Line]
    is_paid: bool = False


@tool
async def order(number: int) -> Order:
    """Find an order."""
    if number == 0:
        raise ToolError("There is no order 0")
    return Order(number=number, lines=[Line(item="tea", amount=2), Line(item="jam", amount=1)])


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("hidden")


@tool
async def receipt() -> str:
    """Print a receipt."""
    return "Receipt 1"


@prompt
async def apology() -> str:
    """Apologize."""
    return "We are sorry"


@resource("shop://hours")
async def hours() -> str:
    """Show the opening hours."""
    return "9 to 5"


class Container(containers.DeclarativeContainer):
    tools = providers.Object([receipt, order, fail])
    prompts = providers.Object([apology])
    resources = providers.Object([hours])


@contextmanager
def failing(text: str) -> Iterator[None]:
    """Expect an assertion to fail with exactly this message."""
    with pytest.raises(AssertionError) as caught:
        yield
    assert str(caught.value) == text


async def test_results(axolotl_client: ClientFactory) -> None:
    """A result is compared with JSON, a model or text, and each difference has its path."""
    async with axolotl_client(Container) as client:
        outcome = await client.call("order", {"number": 7})
        lines: list[Any] = [{"item": "tea", "amount": 2}, {"item": "jam", "amount": 1}]
        assert_result(outcome, {"number": 7, "lines": lines, "is_paid": False})
        assert_result(
            outcome, Order(number=7, lines=[Line(item="tea", amount=2), Line(item="jam", amount=1)], is_paid=False)
        )
        assert_result(await client.get_prompt("apology"), "We are sorry")
        assert_result(await client.read_resource("shop://hours"), "9 to 5")
        with failing(
            "The result differs:\n"
            "  $.number: is 7 instead of '7'\n"
            "  $.lines[0].amount: is 2 instead of 3\n"
            "  $.lines[0]['unit price']: missing, expected 5\n"
            "  $.lines: has 2 items instead of 1\n"
            "  $.is_paid: is False instead of 0"
        ):
            wrong = [{"item": "tea", "amount": 3, "unit price": 5}]
            assert_result(outcome, {"number": "7", "lines": wrong, "is_paid": 0})
        with failing("The result differs:\n  $.is_paid: not expected, is False"):
            assert_result(outcome, {"number": 7, "lines": lines})
        with failing("The call failed: There is no order 0"):
            assert_result(await client.call("order", {"number": 0}), {})
        with pytest.raises(AssertionError, match=r"(?s)\$: has 2 items instead of 30|and 8 more"):
            assert_result(outcome, {str(number): 0 for number in range(25)})


async def test_tool_errors(axolotl_client: ClientFactory) -> None:
    """A failed call is expected with a pattern for its text."""
    async with axolotl_client(Container) as client:
        missing = await client.call("order", {"number": 0})
        assert assert_tool_error(missing, r"no order \d") == "There is no order 0"
        with failing("The message does not match 'paid': There is no order 0"):
            assert_tool_error(missing, "paid")
        with pytest.raises(AssertionError, match=r"^The call did not fail. Its result is: Receipt"):
            assert_tool_error(await client.call("receipt"))


async def test_refusals(axolotl_client: ClientFactory) -> None:
    """A refusal is an error of the protocol, or a result with a reason."""
    rules = {"authorization": {"default": "deny", "denied_as": "forbidden"}}
    async with axolotl_client(Container, settings=rules, principal=as_principal("ann")) as client:
        refusal = await assert_refused(client.call("order", {"number": 7}), "forbidden", match="forbidden for you")
        assert (refusal.reason, refusal.code) == ("forbidden", None)
    async with axolotl_client(Container) as client:
        refusal = await assert_refused(client.call("ordre"))
        assert refusal.code == -32602
        with failing("The reason is None instead of 'forbidden': Tool not found: ordre (did you mean 'order'?)"):
            await assert_refused(client.call("ordre"), "forbidden")
        with failing("The request was not refused, but the tool failed: There is no order 0"):
            await assert_refused(client.call("order", {"number": 0}))
        with pytest.raises(AssertionError, match=r"^The request was not refused, but the tool failed: Tool fail"):
            await assert_refused(client.call("fail"))
        with failing("The request was not refused. Its result is: We are sorry"):
            await assert_refused(client.get_prompt("apology"))
