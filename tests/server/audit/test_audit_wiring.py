"""The audit of a whole server: settings, role and every way a call can end."""

import json
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import Context, ITool, NoArguments
from axolotl_core.errors import ConfigurationError
from axolotl_server import ServerHost, connect
from axolotl_server.audit.log_reading import verify
from tests.support.audited_calls import MemorySink, ends_in
from tests.support.tools import Echo, Text, container_of


class Large(ITool[NoArguments, str]):
    name = "large"
    max_result_bytes = 10

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "x" * 1000


class Lying(ITool[NoArguments, Text]):
    name = "lying"

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        return object()


async def test_a_path_in_the_settings_is_enough(tmp_path: Path) -> None:
    """A path in the settings is enough to record calls, including those with invalid arguments."""
    log = tmp_path / "audit.jsonl"
    async with connect(container_of(Echo()), settings={"audit": {"jsonl_path": str(log)}}) as client:
        await client.call("echo", {"text": "a"})
        await client.call("echo", {"text": 1})
    assert [record["outcome"] for record in ends_in(log)] == ["ok", "invalid_arguments"]
    assert json.loads(log.read_bytes().splitlines()[-1])["event"] == "close"
    assert verify(log).fault is None


async def test_results_that_cannot_be_sent(tmp_path: Path) -> None:
    """A result that is too large or does not match its schema is not recorded as a success."""
    log = tmp_path / "audit.jsonl"
    async with connect(container_of(Large(), Lying()), settings={"audit": {"jsonl_path": str(log)}}) as client:
        assert (await client.call("large")).is_error
        assert (await client.call("lying")).is_error
    large, lying = ends_in(log)
    assert (large["outcome"], large["reason"]) == ("error", "result_too_large")
    assert lying["outcome"] == "failed"


async def test_the_role(tmp_path: Path) -> None:
    """Sinks of the container get records, and an object that is not a sink is reported at the start."""
    sink = MemorySink()
    container = container_of(Echo())
    container.audit_sinks = providers.Object([sink])
    async with connect(container) as client:
        await client.call("echo", {"text": "a"})
    assert [record.event for record in sink.records] == ["start", "end"]
    container.audit_sinks = providers.Object(["no sink"])
    with pytest.raises(ConfigurationError, match="which is not an IAuditSink"):
        async with connect(container):
            pass


async def test_a_server_that_only_looks_touches_no_log(tmp_path: Path) -> None:
    """Starting a server without serving, like `list` and `check` do, writes no log."""
    log = tmp_path / "audit.jsonl"
    async with ServerHost(container_of(Echo()), flags={"audit": {"jsonl_path": str(log)}}):
        pass
    assert not log.exists()


async def test_a_log_in_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    """The error names the directory and not the lock that is opened first."""
    place = tmp_path / "nowhere"
    settings = {"audit": {"jsonl_path": str(place / "audit.jsonl")}}
    async with ServerHost(container_of(Echo(), settings=settings)) as host:
        assert host.assembly.audit is not None
        with pytest.raises(ConfigurationError, match=f"the directory {place} does not exist: create it"):
            host.assembly.audit.trail.open()
