"""The examples of the page about limits."""

import importlib
import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from axolotl_server import InProcessClient, connect
from axolotl_server.access.quotas import quota_rules
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.settings.policies import QuotaSettings
from axolotl_server.stores.quotas import MemoryQuotaStore
from tests.support.core.quota_model import START
from tests.support.docs.pages import EXAMPLES, blocks_in, read_page
from tests.support.tools import container_of

DIRECTORY = EXAMPLES / "limits"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DIRECTORY)


@asynccontextmanager
async def limited_by(name: str) -> AsyncIterator[InProcessClient]:
    """Serve the example with one of its rules and a fixed clock."""
    said = tomllib.loads((DIRECTORY / "axolotl.toml").read_text(encoding="utf-8"))
    rules = quota_rules(QuotaSettings.model_validate(said["quotas"]))
    assert [rule.name for rule in rules] == list(said["quotas"]["rules"])
    store = MemoryQuotaStore(100, lambda: START * 1000)
    layer = QuotaLayer(store, [rule for rule in rules if rule.name == name])
    tools = importlib.import_module("reports").Container().tools()
    async with connect(container_of(*(tool for part in tools for tool in part), layers=[layer])) as client:
        yield client


async def test_reports() -> None:
    """Per day, five monthly reports, a hundred daily reports and unlimited status requests are allowed."""
    async with limited_by("reports") as client:
        months = [await client.call("report.month", {"month": "May"}) for _ in range(6)]
        days = [await client.call("report.day", {"day": "1 May"}) for _ in range(101)]
        assert [month.is_error for month in months] == [False] * 5 + [True]
        assert [day.is_error for day in days] == [False] * 100 + [True]
        assert not (await client.call("status")).is_error


async def test_the_refusal_on_the_page() -> None:
    """The page shows the response to a caller that exceeds the rate."""
    page = blocks_in("docs/operate/limits.md", read_page("docs/operate/limits.md"))
    [shown] = [json.loads(block.text) for block in page if block.language == "json"]
    async with limited_by("per-user") as client:
        for _ in range(100):
            assert not (await client.call("report.day", {"day": "1 May"})).is_error
        result = await client.request("tools/call", {"name": "report.day", "arguments": {"day": "1 May"}})
    assert result["content"] == shown["content"]
    assert result["isError"] is True
    assert result["_meta"].items() >= shown["_meta"].items()
