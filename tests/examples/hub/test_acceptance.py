"""The requirement "Tools Call Handler", criterion by criterion, in every revision."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ToolError, tool
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, REVISIONS, Revision
from axolotl_examples.hub import Container
from axolotl_examples.hub.container import HubSettings
from axolotl_examples.hub.conversation import IResponder
from axolotl_examples.hub.mounting import mount
from axolotl_examples.hub.repository import Turn
from tests.examples.registration.dialogue import in_memory

every_revision = pytest.mark.parametrize("revision", REVISIONS, ids=lambda revision: revision.name)
every_handshake = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.name)

HELLO = {"session_name": "my-session", "query": "Hello, world!"}


class FailingResponder(IResponder):
    """Fails in the middle of its answer."""

    async def respond(self, history: Sequence[Turn], query: str) -> AsyncIterator[str]:
        yield "Well, "
        raise ToolError("The model is not available")


class Weather:
    """An activation with a method that has the same name as another."""

    @tool
    async def history(self, place: str) -> str:
        """Tell how the weather was."""
        return f"It rained in {place}"


def make_container(**services: Any) -> Any:
    container: Any = Container()
    container.hub_settings.override(providers.Object(HubSettings(database=":memory:")))
    for name, service in services.items():
        getattr(container, name).override(providers.Object(service))
    return container


def text_of(reply: Any) -> str:
    [block] = reply["result"]["content"]
    return str(block["text"])


@every_revision
async def test_document(revision: Revision) -> None:
    """The request in the document gets the reply in the document; the newest revision adds members of its own."""
    request = {"name": "claudecode.chat", "arguments": {"session_name": "my-session", "query": "Hello, world!"}}
    async with in_memory(make_container(), revision) as client:
        reply = await client.ask("tools/call", request, id=3)
    result = {"content": [{"type": "text", "text": "Hello! How can I help?"}], "isError": False}
    if revision.stateless:
        assert reply["result"].items() >= result.items()
    else:
        assert reply == {"jsonrpc": "2.0", "id": 3, "result": result}


@every_revision
@pytest.mark.parametrize("name", ["no-dot-here", "chat", "", ".chat", "conversation."])
async def test_name_format(revision: Revision, name: str) -> None:
    """Parses `namespace.method` tool names: any other form is a protocol error."""
    async with in_memory(make_container(), revision) as client:
        reply = await client.call(name, HELLO)
    assert reply["error"] == {"code": -32602, "message": f"Invalid tool name format: '{name}'"}


@every_revision
async def test_routing(revision: Revision) -> None:
    """Routes to the correct activation, including one that was mounted while the hub runs."""
    container = make_container()
    async with in_memory(container, revision) as client:
        await client.call("conversation.chat", HELLO)
        container.tool_registry().register_range(mount("weather", Weather()))
        said = await client.call("conversation.history", {"session_name": "my-session"})
        rained = await client.call("weather.history", {"place": "Vienna"})
        mounted = await client.call("hub.activations")
    assert "Hello, world!" in text_of(said)
    assert text_of(rained) == "It rained in Vienna"
    assert text_of(mounted) == '["conversation","claudecode","hub","weather"]'


@every_revision
async def test_buffering(revision: Revision) -> None:
    """Buffers streaming response: text is joined, and no progress is sent without a request for it."""
    async with in_memory(make_container(), revision) as client:
        reply = await client.ask("tools/call", {"name": "conversation.chat", "arguments": HELLO}, id=3)
        assert client.notices == []
    assert reply["id"] == 3
    assert reply["result"]["content"] == [{"type": "text", "text": "Hello! How can I help?"}]
    assert reply["result"]["isError"] is False


@every_revision
async def test_buffering_items(revision: Revision) -> None:
    """Buffers streaming response: other items become a list."""
    async with in_memory(make_container(), revision) as client:
        reply = await client.call("hub.methods", {"namespace": "hub"})
    assert text_of(reply) == (
        '[{"name":"hub.activations","description":"List the namespaces of the hub."},'
        '{"name":"hub.methods","description":"Stream the methods of an activation."}]'
    )


@every_revision
async def test_progress(revision: Revision) -> None:
    """A client that requests progress gets a notification per word before the result."""
    async with in_memory(make_container(), revision) as client:
        await client.call("conversation.chat", HELLO, token="words")
        assert [notice["params"] for notice in client.notices] == [
            {"progressToken": "words", "progress": number} for number in range(1, 6)
        ]


@every_revision
@pytest.mark.parametrize("method", ["history", "forget"])
async def test_tool_error(revision: Revision, method: str) -> None:
    """Returns tool errors as `isError: true`."""
    async with in_memory(make_container(), revision) as client:
        result = (await client.call(f"conversation.{method}", {"session_name": "foo"}))["result"]
    assert result["content"] == [{"type": "text", "text": "Session 'foo' not found"}]
    assert result["isError"] is True


@every_revision
async def test_stream_error(revision: Revision) -> None:
    """A stream that fails is an error, and its earlier output is dropped."""
    async with in_memory(make_container(responder=FailingResponder()), revision) as client:
        result = (await client.call("conversation.chat", HELLO))["result"]
        history = await client.call("conversation.history", {"session_name": "my-session"})
    assert result["content"] == [{"type": "text", "text": "The model is not available"}]
    assert result["isError"] is True
    assert text_of(history) == "Session 'my-session' not found"


@every_revision
@pytest.mark.parametrize("params", [{}, {"name": 3}, {"name": "conversation.chat", "arguments": "Hello"}])
async def test_protocol_errors(revision: Revision, params: Any) -> None:
    """Returns protocol errors as JSON-RPC errors."""
    async with in_memory(make_container(), revision) as client:
        assert (await client.ask("tools/call", params))["error"]["code"] == -32602


@every_revision
async def test_unknown_method(revision: Revision) -> None:
    """A valid name without a mounted method is not found."""
    async with in_memory(make_container(), revision) as client:
        error = (await client.call("conversation.sing"))["error"]
    assert error["code"] == (-32602 if revision.stateless else -32601)
    assert error["message"].startswith("Tool not found: conversation.sing")


@every_handshake
async def test_ready(revision: Revision) -> None:
    """Requires Ready state: nothing can be called before the handshake is confirmed."""
    params = {"name": "conversation.chat", "arguments": HELLO}
    async with in_memory(make_container(), revision, ready=False) as client:
        before = await client.ask("tools/call", params)
        await client.begin()
        between = await client.ask("tools/call", params)
        await client.send("notifications/initialized")
        history = await client.call("conversation.history", {"session_name": "my-session"})
        after = await client.ask("tools/call", params)
    assert [reply["error"]["code"] for reply in (before, between)] == [-32602, -32602]
    assert "before the connection is ready" in between["error"]["message"]
    assert text_of(history) == "Session 'my-session' not found"
    assert text_of(after) == "Hello! How can I help?"
