"""A tool process that was taken over cannot run code in the server, or harm other calls."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ITool, tools_of
from axolotl_server import connect
from tests.support.containers import hostile_process_tools as hostile
from tests.support.containers import process_tools
from tests.support.forked_processes import share_forks
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

share_forks()

ONE = {"limits": {"processes": 1}}
INVALID = (
    *("send_pickle", "send_pickled_outcome", "send_garbage", "send_wrong_types", "send_wrong_log"),
    *("send_another_reply", "send_too_much", "load_again"),
)


@pytest.mark.parametrize("attack", hostile.ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_on_the_server(attack: ITool[Any, Any], tmp_path: Path) -> None:
    """Whatever the process sends, the server runs none of it, answers the call, and serves the next one."""
    heard: list[Any] = []
    trap = tmp_path / "trap"
    async with connect(container_of(attack, process_tools.whoami), settings=ONE) as client:
        meta = {"io.modelcontextprotocol/logLevel": "info", "progressToken": 1}
        params = {"name": attack.name, "arguments": {"path": str(trap)}, "_meta": meta}
        result = await client.request("tools/call", params, on_progress=heard.append, on_log=heard.append)
        assert not (await client.call("whoami")).is_error
    assert str(os.getpid()) not in (trap.read_text() if trap.exists() else "")
    text = result["content"][0]["text"]
    if attack.name == "report_attack":
        assert text == "done"
        assert all("Attack object" in json.dumps(message) for message in heard)
        assert len(heard) == 2
    elif attack.name in INVALID:
        assert text == f"Tool {attack.name} crashed: its process sent an invalid message"
        assert result["_meta"]["axolotl/reason"] == "crashed"
    else:
        assert text.startswith(f"Tool {attack.name} failed. Reference:")


async def test_an_attack_while_the_tool_is_loaded(tmp_path: Path) -> None:
    """What a process sends before its first call is not unpickled either."""
    trap, container = tmp_path / "trap", container_of()
    container.tools = providers.Callable(tools_of, providers.Singleton(hostile.LoadingTool, str(trap)))
    async with connect(container, settings=ONE) as client:
        outcome = await client.call("loading")
    assert outcome.is_error
    assert not trap.exists()


async def test_large_outputs_and_log_messages_are_refused_in_the_process() -> None:
    """An output beyond the limit is an error for the model, and a long log message is shortened."""
    heard: list[Any] = []
    async with connect(container_of(hostile.return_too_much, hostile.log_too_much), settings=ONE) as client:
        refused = await client.call("return_too_much", {"path": ""})
        meta = {"io.modelcontextprotocol/logLevel": "info"}
        params = {"name": "log_too_much", "arguments": {"path": ""}, "_meta": meta}
        result = await client.request("tools/call", params, on_log=heard.append)
    assert refused.meta["axolotl/reason"] == "result_too_large"
    assert result["content"][0]["text"] == "done"
    assert len(heard[0]["data"]) < 2000


async def test_prompts_and_resources_in_processes() -> None:
    """Messages and contents arrive as they were made."""
    container = container_of()
    container.prompts = providers.List(providers.Object(hostile.greet))
    container.resources = providers.List(providers.Object(hostile.read))
    async with connect(container, settings=ONE) as client:
        got = await client.request("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
        read = await client.request("resources/read", {"uri": "data://ada"})
    assert got["description"] == "greeting"
    assert got["messages"][0]["content"]["text"].startswith("Hello Ada from ")
    assert not got["messages"][0]["content"]["text"].endswith(f" {os.getpid()}")
    assert got["messages"][1] == {"role": "user", "content": {"type": "image", "data": "/w==", "mimeType": "image/png"}}
    assert got["_meta"]["a"] == 1
    assert read["contents"][0]["blob"] == "YWRh/w=="
