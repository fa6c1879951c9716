"""The hub, served with `axolotl serve`."""

import sys
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters

from axolotl_core.protocol.versions import Revision
from tests.examples.registration.dialogue import EVERYWHERE, Servers
from tests.support.commands import ROOT

TARGET = "axolotl_examples.hub:Container"


@pytest.mark.parametrize(("revision", "transport"), EVERYWHERE)
async def test_served(revision: Revision, transport: str, servers: Servers) -> None:
    """Every method works in every revision, over stdio and HTTP, and progress precedes the result."""
    session = {"session_name": "my-session"}
    async with servers.over(transport, TARGET, revision) as client:
        names = await client.names()
        spoken = await client.call("conversation.chat", {**session, "query": "Hello, world!"}, token=7)
        assert [notice["params"]["progress"] for notice in client.notices] == [1, 2, 3, 4, 5]
        turns = await client.call("conversation.history", session)
        gone = await client.call("conversation.forget", session)
        missing = await client.call("conversation.history", session)
        dotless = await client.call("no-dot-here")
        mounted = await client.call("hub.activations")
    assert names == [
        "conversation.chat",
        "conversation.history",
        "conversation.forget",
        "claudecode.chat",
        "claudecode.history",
        "claudecode.forget",
        "hub.activations",
        "hub.methods",
    ]
    texts = [reply["result"]["content"][0]["text"] for reply in (spoken, turns, gone, missing, mounted)]
    assert texts[0] == "Hello! How can I help?"
    assert texts[1] == (
        '[{"speaker":"user","text":"Hello, world!"},{"speaker":"assistant","text":"Hello! How can I help?"}]'
    )
    assert texts[2:] == ["Forgot 2 turns.", "Session 'my-session' not found", '["conversation","claudecode","hub"]']
    assert dotless["error"] == {"code": -32602, "message": "Invalid tool name format: 'no-dot-here'"}


async def test_official_client(tmp_path: Path) -> None:
    """The official client chats over stdio, receives progress, and finds its session again after a restart."""
    file = str(tmp_path / "talk.sqlite3")
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "axolotl_cli", "serve", TARGET], cwd=ROOT, env={"HUB_DATABASE": file}
    )
    heard: list[float] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    hello = {"session_name": "my-session", "query": "Hello, world!"}
    async with Client(server) as client:
        await client.call_tool("conversation.chat", hello, progress_callback=listen)
        with pytest.raises(MCPError, match="Invalid tool name format: 'chat'"):
            await client.call_tool("chat", hello)
    async with Client(server) as client:
        result = await client.call_tool("conversation.history", {"session_name": "my-session"})
    assert heard == [1, 2, 3, 4, 5]
    assert len(result.structured_content or ()) == 2
