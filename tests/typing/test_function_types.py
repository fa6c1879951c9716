"""Type inference for `@tool`, checked by mypy; running the tests proves only that the file imports."""

from collections.abc import AsyncIterator, Coroutine
from typing import Any, assert_type

from axolotl_core import Context, ITool, tool, tools_of
from axolotl_core.tools.tool import FunctionTool


@tool
async def fetch(url: str, retries: int = 3) -> bytes:
    return url.encode() * retries


@tool
def double(number: int) -> int:
    return number * 2


@tool(name="triple", timeout_seconds=2.0, execution="loop")
def thrice(number: int, context: Context) -> int:
    return number * 3


@tool
async def count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number


class Desk:
    @tool
    def answer(self, question: str) -> str:
        return question


def test_a_plain_function_keeps_its_type() -> None:
    """Calling the tool has the type of the function."""
    assert_type(double(2), int)
    assert double(number=2) == 4


async def test_an_async_function_keeps_its_type() -> None:
    """Calling returns the coroutine of the function."""
    pending = fetch("x", retries=2)
    assert assert_type(pending, Coroutine[Any, Any, bytes]) is pending
    assert assert_type(await pending, bytes) == b"xx"


def test_options_keep_the_type() -> None:
    """A decorator with options does not change the types."""
    assert_type(thrice(1, Context()), int)
    assert thrice.name == "triple"


def test_an_async_generator_keeps_its_type() -> None:
    """Calling returns the iterator of the function."""
    assert_type(count(3), AsyncIterator[int])


def test_a_decorated_function_is_a_tool() -> None:
    """A decorated function can be used as a tool."""
    as_tool: ITool[Any, Any] = double
    assert isinstance(as_tool, FunctionTool)
    assert_type(tools_of(Desk()), tuple[FunctionTool[..., Any], ...])


def test_bound_methods_keep_what_they_return() -> None:
    """A tool method of an object returns the type of the method."""
    assert_type(Desk().answer("why"), str)
    assert Desk().answer("why") == "why"


def test_wrong_calls_are_seen_by_the_checker() -> None:
    """Wrong argument types and unknown options need a `type: ignore`, which strict mypy verifies."""

    def probe() -> None:
        double("two")  # type: ignore[arg-type]
        tool(timeout="soon")  # type: ignore[call-overload]
        tool(timeout_seconds="soon")  # type: ignore[call-overload]

    assert callable(probe)
