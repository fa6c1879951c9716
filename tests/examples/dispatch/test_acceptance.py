"""The requirement "tools/list Empty Registry, tools/call Dispatch", criterion by criterion, in every revision."""

from typing import Any

import pytest

from axolotl_core import ToolError, ToolRegistry
from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_examples.dispatch import Container
from tests.examples.registration.dialogue import in_memory

pytestmark = pytest.mark.parametrize("revision", REVISIONS, ids=lambda revision: revision.name)

SCHEMA = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


def members(reply: Any) -> Any:
    """Drop the members that only stateless results have."""
    extra = {"resultType", "_meta", "ttlMs", "cacheScope"}
    return {key: value for key, value in reply["result"].items() if key not in extra}


async def add(arguments: dict[str, Any]) -> str:
    return str(arguments["a"] + arguments["b"])


async def test_empty_list(revision: Revision) -> None:
    """`tools/list` request returns empty array response."""
    async with in_memory(Container(), revision) as client:
        reply = await client.ask("tools/list", {}, id="req-2")
    assert (reply["jsonrpc"], reply["id"], members(reply)) == ("2.0", "req-2", {"tools": []})


async def test_unregistered_tool(revision: Revision) -> None:
    """`tools/call` with an unregistered tool name returns error response."""
    async with in_memory(Container(), revision) as client:
        reply = await client.ask("tools/call", {"name": "toolName", "arguments": {}}, id="req-3")
    error = {"code": -32601, "message": "Tool not found: toolName"}
    assert reply == {"jsonrpc": "2.0", "id": "req-3", "error": error}


async def test_register_tool(revision: Revision) -> None:
    """`register_tool()` function exists in the tool registry."""
    container = Container()
    async with in_memory(container, revision) as client:
        registry: ToolRegistry = container.tool_registry()
        assert registry.register_tool("add", SCHEMA, add) is True
        assert registry.register_tool("ADD", SCHEMA, add) is False
        assert await client.names() == ["add"]


async def test_registered_tool_is_listed(revision: Revision) -> None:
    """Tools registered in the registry are reflected in `tools/list`, with their name, description and schema."""
    container = Container()
    async with in_memory(container, revision) as client:
        assert await client.names() == []
        container.tool_registry().register_tool("add", SCHEMA, add, description="Add two numbers.")
        [tool] = (await client.ask("tools/list"))["result"]["tools"]
        container.tool_registry().unregister("add")
        assert await client.names() == []
    assert tool == {"name": "add", "description": "Add two numbers.", "inputSchema": {"type": "object", **SCHEMA}}


async def test_description_in_the_schema(revision: Revision) -> None:
    """A tool that is registered as name, schema and handler is listed with the description of its schema."""
    schema = {"description": "Add two numbers.", **SCHEMA}
    container = Container()
    async with in_memory(container, revision) as client:
        container.tool_registry().register_tool("add", schema, add)
        container.tool_registry().register_tool("sum", schema, add, description="Sum two numbers.")
        tools = (await client.ask("tools/list"))["result"]["tools"]
    assert [tool["description"] for tool in tools] == ["Add two numbers.", "Sum two numbers."]


async def test_success(revision: Revision) -> None:
    """Success: the result of the handler is returned as text."""
    container = Container()
    container.tool_registry().register_tool("toolName", SCHEMA, add)
    async with in_memory(container, revision) as client:
        reply = await client.ask("tools/call", {"name": "toolName", "arguments": {"a": 40, "b": 2}}, id="req-3")
    assert (reply["id"], members(reply)) == ("req-3", {"content": [{"type": "text", "text": "42"}]})


async def test_error(revision: Revision) -> None:
    """Error: the message of the handler is returned as text, with `isError`."""

    def overdraw(arguments: dict[str, Any]) -> str:
        raise ToolError("There is not enough money.")

    container = Container()
    async with in_memory(container, revision) as client:
        container.tool_registry().register_tool("pay", {}, overdraw)
        reply = await client.call("pay")
    told = {"type": "text", "text": "There is not enough money."}
    assert members(reply) == {"content": [told], "isError": True}


async def test_failure(revision: Revision, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception is also a result with `isError`, and its message appears only in the log."""

    def crash(arguments: dict[str, Any]) -> str:
        raise RuntimeError("disk 7 is full")

    container = Container()
    async with in_memory(container, revision) as client:
        container.tool_registry().register_tool("save", {}, crash)
        result = (await client.call("save"))["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Tool save failed. Reference: ")
    assert "disk 7 is full" in caplog.text


async def test_arguments_are_checked(revision: Revision) -> None:
    """Every call is validated against the schema that the tool was registered with."""
    container = Container()
    container.tool_registry().register_tool("add", SCHEMA, add)
    async with in_memory(container, revision) as client:
        reply = await client.call("add", {"a": 1, "b": "2"})
    told = reply["error"]["message"] if "error" in reply else reply["result"]["content"][0]["text"]
    assert told == 'Invalid arguments: b: "2" is not of type "integer"'


async def test_handshake_comes_first(revision: Revision) -> None:
    """Process tools/ requests after MCP initialization is complete."""
    async with in_memory(Container(), revision, ready=False) as client:
        if not revision.stateless:
            await client.begin()
            assert (await client.ask("tools/list"))["error"]["code"] == -32602
            await client.send("notifications/initialized")
        assert await client.names() == []
