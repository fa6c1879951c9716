"""Results are encoded under their size limit."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, ITool, NoArguments
from axolotl_core.content import ImageContent, TextContent, ToolResult
from axolotl_core.policies.tool_rules import Idempotency
from axolotl_server import connect
from tests.support.tools import container_of

LIMIT = 100_000
HUGE = 20_000_000


class Lines(BaseModel):
    lines: list[str] = []
    more: Any = None


class Lazy(BaseModel):
    numbers: Iterable[int]


@dataclass
class Pair:
    left: Any
    right: Any


class Given(ITool[NoArguments, Any]):
    """Returns what it was given."""

    name = "given"
    max_result_bytes = LIMIT

    def __init__(self, declared: Any, make: Callable[[], Any]) -> None:
        self.output_model = declared  # type: ignore[misc]
        self._make = make

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        return self._make()


class GivenOnce(Given):
    """Stores its results."""

    idempotency = Idempotency()


def endless() -> Iterator[str]:
    """Yield lines without end."""
    return itertools.repeat("x" * 100)


def folded(depth: int) -> Any:
    """Make a list that is small in memory, but would be huge in JSON."""
    value: Any = ["leaf"] * 10
    for _ in range(depth):
        value = [value] * 10
    return value


TEXT = "x" * HUGE
DATA = b"x" * HUGE

TOO_LARGE: dict[str, tuple[Any, Callable[[], Any]]] = {
    "an endless iterator": (Any, endless),
    "an endless iterator in a dict": (Any, lambda: {"lines": endless()}),
    "an endless iterator in a list": (Any, lambda: [1, [endless()]]),
    "an endless iterator as a list": (list[str], endless),
    "an endless iterator in a declared model": (Lines, lambda: {"lines": endless()}),
    "an endless iterator in a model": (Lazy, lambda: Lazy(numbers=itertools.count())),
    "an endless iterator in another model": (Any, lambda: Lines(more=endless())),
    "endless iterators in an iterator": (Any, lambda: itertools.repeat(endless())),
    "a text": (str, lambda: TEXT),
    "a text of unknown type": (Any, lambda: TEXT),
    "a text of control characters": (str, lambda: "\0" * (LIMIT - 1)),
    "a text of other scripts": (Any, lambda: {"text": "水" * (LIMIT - 1)}),
    "bytes": (Any, lambda: DATA),
    "bytes in a model": (bytes, lambda: DATA),
    "a text in a model": (Lines, lambda: Lines(lines=[TEXT])),
    "a text in a dataclass": (Pair, lambda: Pair(TEXT, None)),
    "a key": (dict[str, int], lambda: {TEXT: 1}),
    "a folded list": (Any, lambda: folded(12)),
    "a folded list in a model": (Lines, lambda: Lines(more=folded(12))),
    "a text block": (Any, lambda: TextContent(TEXT)),
    "an image": (list[ImageContent], lambda: [ImageContent(DATA, "image/png")]),
    "a whole result": (ToolResult, lambda: ToolResult((), structured={"text": TEXT})),
    "the meta of a result": (ToolResult, lambda: ToolResult((), meta={"text": TEXT})),
}


@pytest.mark.parametrize("kind", [Given, GivenOnce])
@pytest.mark.parametrize("what", TOO_LARGE)
async def test_a_result_that_is_too_large(what: str, kind: type[Given]) -> None:
    """The caller gets an error, and the server has used little more memory than the limit."""
    declared, make = TOO_LARGE[what]
    async with connect(container_of(kind(declared, make))) as client:
        await client.list_tools()
        tracemalloc.start()
        try:
            outcome = await client.call("given")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert outcome.is_error
    assert outcome.meta["axolotl/reason"] == "result_too_large"
    assert outcome.meta["axolotl/maxBytes"] == LIMIT
    assert peak < 1_000_000 + 4 * LIMIT


@pytest.mark.parametrize(
    ("declared", "make", "text"),
    [
        (Any, lambda: iter([1, "a"]), '[1,"a"]'),
        (Any, lambda: {"lines": iter("ab")}, '{"lines":["a","b"]}'),
        (list[int], lambda: iter([1, 2]), "[1,2]"),
        (Lazy, lambda: Lazy(numbers=iter([1, 2])), '{"numbers":[1,2]}'),
        (Any, lambda: Lines(more=map(str, [1])), '{"lines":[],"more":["1"]}'),
        (str, lambda: "x" * (LIMIT - 1000), "x" * (LIMIT - 1000)),
        (str, lambda: "\n" * (LIMIT // 2 - 1000), "\n" * (LIMIT // 2 - 1000)),
    ],
)
async def test_a_result_that_fits(declared: Any, make: Callable[[], Any], text: str) -> None:
    """Iterators with an end are lists, and texts may be as long as the limit."""
    async with connect(container_of(Given(declared, make))) as client:
        outcome = await client.call("given")
        assert (outcome.is_error, outcome.text) == (False, text)


async def test_a_stored_iterator() -> None:
    """The items of an iterator are sent and stored."""
    async with connect(container_of(GivenOnce(Any, lambda: {"lines": iter("ab")}))) as client:
        for _ in range(2):
            assert (await client.call("given")).structured == {"lines": ["a", "b"]}
