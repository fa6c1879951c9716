"""The starter example."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_examples.starter import Container
from axolotl_server import InProcessClient, connect
from axolotl_server.client.replies import CallReply

SMALL_TOOLS = ["echo", "calculate", "current_time", "text_statistics"]
SOURCE_TOOLS = ["get_sources", "list_categories", "get_provenance", "get_endorsements"]


@pytest.fixture
async def client() -> AsyncIterator[InProcessClient]:
    container: Any = Container()
    container.now.override(providers.Object(datetime(2026, 7, 28, 12, 0, tzinfo=UTC).astimezone))
    async with connect(container) as connected:
        yield connected


async def calculate(client: InProcessClient, left: float, operation: str, right: float) -> CallReply:
    return await client.call("calculate", {"left": left, "operation": operation, "right": right})


async def test_tools(client: InProcessClient) -> None:
    """Every tool has a title, a description and described arguments."""
    tools = await client.list_tools()
    assert [tool["name"] for tool in tools] == [*SMALL_TOOLS, "keyword_search", *SOURCE_TOOLS]
    assert all(tool["description"] for tool in tools)
    arguments = [argument for tool in tools for argument in tool["inputSchema"]["properties"].values()]
    assert all(argument["description"] for argument in arguments)


async def test_systems_are_tool_sets() -> None:
    """The search and the sources are tool sets; the small tools are always available."""
    async with connect(Container(), toolsets=["sources"]) as client:
        assert [tool["name"] for tool in await client.list_tools()] == [*SMALL_TOOLS, *SOURCE_TOOLS]


async def test_a_first_call_is_of_use(client: InProcessClient) -> None:
    """The search finds this file in the working directory, and the sources include one for Rust."""
    found = await client.call("keyword_search", {"keyword": "a_first_call_is_of_use", "root_paths": ["tests/examples"]})
    assert found.structured["file_count"] == 1
    assert "Rust Learning" in (await client.call("get_sources", {"query": "learn rust"})).text


async def test_echo(client: InProcessClient) -> None:
    """`echo` returns its text."""
    outcome = await client.call("echo", {"text": "hello\n𝄞"})
    assert (outcome.text, outcome.structured) == ("hello\n𝄞", None)


@pytest.mark.parametrize(
    ("left", "operation", "right", "result"),
    [(1, "add", 2, 3), (1, "subtract", 2, -1), (6, "multiply", 7, 42), (1, "divide", 4, 0.25), (2, "power", 10, 1024)],
)
async def test_calculate(client: InProcessClient, left: float, operation: str, right: float, result: float) -> None:
    """`calculate` returns the result of an operation."""
    assert (await calculate(client, left, operation, right)).structured == {"result": result}


@pytest.mark.parametrize(
    ("left", "operation", "right", "reason"),
    [
        pytest.param(1, "divide", 0, "Division by zero", id="division"),
        pytest.param(0, "power", -1, "Division by zero", id="power-of-zero"),
        pytest.param(10, "power", 1000, "too large", id="overflow"),
        pytest.param(1e308, "multiply", 10, "not a finite", id="infinite"),
        pytest.param(-1, "power", 0.5, "not a finite real number", id="complex"),
    ],
)
async def test_no_result(client: InProcessClient, left: float, operation: str, right: float, reason: str) -> None:
    """A calculation without a result is an error for the model."""
    outcome = await calculate(client, left, operation, right)
    assert outcome.is_error
    assert reason in outcome.text


@pytest.mark.parametrize(
    ("timezone", "time"), [("UTC", "2026-07-28T12:00:00Z"), ("Asia/Tokyo", "2026-07-28T21:00:00+09:00")]
)
async def test_current_time(client: InProcessClient, timezone: str, time: str) -> None:
    """The time is converted to the requested time zone."""
    outcome = await client.call("current_time", {"timezone": timezone})
    assert outcome.structured == {"time": time, "timezone": timezone, "weekday": "Tuesday"}


async def test_current_time_without_a_zone(client: InProcessClient) -> None:
    """The default time zone is UTC."""
    assert (await client.call("current_time")).structured["timezone"] == "UTC"


@pytest.mark.parametrize("timezone", ["Europe/Vinna", "Europe", "../../etc/passwd", "", "a\0b"])
async def test_unknown_zone(client: InProcessClient, timezone: str) -> None:
    """An unknown time zone is an error for the model."""
    outcome = await client.call("current_time", {"timezone": timezone})
    assert outcome.is_error
    assert outcome.text.startswith("There is no time zone")


async def test_text_statistics(client: InProcessClient) -> None:
    """Characters, words and lines are counted."""
    outcome = await client.call("text_statistics", {"text": "one two\nthree " + "four " * 112})
    assert outcome.structured == {"characters": 574, "words": 115, "lines": 2, "reading_seconds": 30}


async def test_system_clock() -> None:
    """Without a replacement, the time is that of this machine."""
    async with connect(Container()) as client:
        told = datetime.fromisoformat((await client.call("current_time")).structured["time"])
    assert abs((datetime.now(UTC) - told).total_seconds()) < 60
