"""The examples of timeouts and of per-call resources."""

import asyncio
import importlib
import json
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_server import ServerHost, connect
from tests.support.docs.pages import read_page
from tests.support.servers.serving import until


@pytest.mark.parametrize(
    ("name", "arguments"), [("wait_for_news", {}), ("write_report", {"pages": 5}), ("count_primes", {"below": 10**6})]
)
async def test_deadlines(name: str, arguments: dict[str, Any]) -> None:
    """Each kind of tool is answered at its deadline."""
    async with connect(importlib.import_module("deadlines").Container()) as client:
        outcome = await client.call(name, arguments)
    assert outcome.text == f"Tool {name} did not finish within 0.5 seconds"
    assert outcome.text.replace(name, "write_report") in read_page("docs/operate/deadlines.md")


async def test_limits_of_the_examples() -> None:
    """The limits are those on the page."""
    async with ServerHost(importlib.import_module("deadlines").Container()) as host:
        limits = {binding.spec.name: binding.spec.limits for binding in host.assembly.tools.bindings()}
    assert (limits["index_archive"].timeout_seconds, limits["index_archive"].max_timeout_seconds) == (10, 300)
    assert limits["write_report"].pool == "reports"
    assert limits["ask_the_mainframe"].queue_limit == 20


async def test_quick_calls() -> None:
    """The same tools succeed when they have enough time."""
    async with connect(importlib.import_module("deadlines").Container()) as client:
        assert (await client.call("write_report", {"pages": 1})).text == "1 pages"
        assert (await client.call("index_archive", {"folders": ["a", "b"]})).structured == 2
        assert (await client.call("ask_the_mainframe", {"question": "why"})).text == "why: 42"


async def test_transfer() -> None:
    """Each call gets its own session, which knows the caller and how the call ended."""
    container = importlib.import_module("transfer").Container()
    database = container.database()
    async with connect(container, principal=Principal("ada")) as client:
        assert (await client.call("transfer", {"amount": 5, "to": "Bob"})).text == "sent"
        assert (await client.call("transfer", {"amount": 500, "to": "Bob"})).is_error
        await until(lambda: len(database.journal) == 4)
    assert database.rows == ["5 to Bob"]
    assert sorted(database.journal) == ["closed", "closed after ToolError", "opened for ada", "opened for ada"]


async def test_a_thousand_transfers() -> None:
    """Every session is closed, even with many concurrent calls."""
    container = importlib.import_module("transfer").Container()
    database = container.database()
    async with connect(container) as client:
        calls = (client.call("transfer", {"amount": number, "to": "Bob"}) for number in range(200))
        await asyncio.gather(*calls)
    assert len(database.journal) == 400
    assert json.dumps(database.journal).count("closed after ToolError") == 99
