"""Tool results other than text: structured content, pages, headers and tasks."""

from typing import Any

import pytest
from mcp import MCPError
from mcp_types import Result, TextContent, TextResourceContents

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import Way, by_every_way, by_handshake_ways, by_stateless_ways
from tests.support.clients.connections import APPS, Places, connected
from tests.support.clients.full_container import PAGE, Container
from tests.support.clients.simulated_user import words
from tests.support.clients.task_extension import CancelTask, Created, GetTask, State, TaskParams
from tests.support.servers.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@by_every_way
async def test_structure_arrives(peer: IPeer) -> None:
    """Structured output matches the schema that the client validates it with, and is repeated as text."""
    result = await peer.call("report", {"city": "Oslo"})
    winds = [{"speed": 3.5, "direction": "north"}, {"speed": 1.0, "direction": "east"}]
    assert result.structured_content == {"city": "Oslo", "winds": winds, "note": None}
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert '"Oslo"' in block.text


@by_every_way
async def test_a_tool_has_a_page(peer: IPeer) -> None:
    """A client with MCP Apps finds and reads the page of a tool, and the tool sees that the client supports it."""
    listed = {tool.name: tool for tool in await peer.tools()}
    assert listed["dashboard"].meta == {"ui": {"resourceUri": "ui://dashboard"}}
    (content,) = (await peer.read("ui://dashboard")).contents
    assert isinstance(content, TextResourceContents)
    assert (content.text, content.mime_type) == (PAGE, "text/html;profile=mcp-app")
    assert await peer.text_of("dashboard") == str(APPS)
    offered = peer.session.server_capabilities
    if peer.way.mode != "2026-07-28":  # with a fixed revision, clients send no discovery request
        assert offered is not None
        assert "io.modelcontextprotocol/ui" in (offered.extensions or {})


@pytest.mark.parametrize("tenant", ["blue", "Zürich ", ""])
async def test_an_argument_is_repeated_in_a_header(tenant: str, places: Places) -> None:
    """A client that does not know the tool yet is asked to list it, and then repeats the argument in a header."""
    async with connected(Way("official", "auto", "http"), places) as peer:
        assert await peer.text_of("routed", {"tenant": tenant, "amount": 3}) == f"3 for {tenant}"
        calls = [request for request in peer.wire.requests if request.headers.get("mcp-name") == "routed"]
        assert ["mcp-param-tenant" in request.headers for request in calls] == [False, True]


@by_every_way
async def test_names_of_every_script(peer: IPeer) -> None:
    """A tool name may contain characters that HTTP headers cannot carry."""
    await peer.call("put", {"kind": "tools", "name": "grüße 世界"})
    assert await peer.text_of("grüße 世界") == "grüße 世界"
    await peer.call("take", {"kind": "tools", "name": "grüße 世界"})


@by_stateless_ways
async def test_a_call_becomes_a_task(peer: IPeer) -> None:
    """A client that supports tasks follows a task to its end and answers its questions."""
    peer.person.fill_in = words("sunny")
    result = await peer.call("compose", {"name": "Oslo"})
    assert result.structured_content == {"city": "Oslo", "winds": [], "note": "sunny"}
    assert peer.tasks.states[0] == "working"
    assert "input_required" in peer.tasks.states
    assert peer.tasks.states[-1] == "completed"


@by_stateless_ways
async def test_a_task_fails(peer: IPeer) -> None:
    """A failed task has the result of the failed call, so the model sees the error."""
    failed = await peer.call("spoil")
    assert failed.is_error
    assert failed.content == [TextContent(text="spoiled")]


@by_stateless_ways
async def test_a_task_is_cancelled(peer: IPeer) -> None:
    """Canceling a task stops its tool."""
    name = f"toil-of-{peer.way}"
    created = await peer.session.call_tool("toil", {"name": name}, allow_claimed=True)
    assert isinstance(created, Created)
    which = TaskParams(task_id=created.task_id)
    assert await peer.text_of("began", {"name": name}) == "true"
    await peer.session.send_request(CancelTask(params=which), Result)
    assert await peer.text_of("stopped", {"name": name}) == "true"
    assert (await peer.session.send_request(GetTask(params=which), State)).status == "cancelled"


@by_handshake_ways
async def test_a_call_without_a_task(peer: IPeer) -> None:
    """Without a request for a task, a call is a normal call, unless the tool requires a task."""
    peer.person.fill_in = words("rainy")
    result = await peer.call("compose", {"name": "Oslo"})
    assert result.structured_content == {"city": "Oslo", "winds": [], "note": "rainy"}
    with pytest.raises(MCPError, match="Tool spoil runs only as a task") as caught:
        await peer.call("spoil")
    assert caught.value.error.code == -32601


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_pages_of_a_list_are_followed(mode: Any, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads a list page by page gets every item once."""
    way = Way("fastmcp", mode, "http")
    async with connected(way, places) as peer:
        expected = [[one.name for one in found] for found in (await peer.tools(), await peer.resources())]
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", 2)
    async with (
        serving(Container()) as server,
        connected(way, Places(server.url, "", places.command)) as peer,
    ):
        assert [[one.name for one in found] for found in (await peer.tools(), await peer.resources())] == expected
