"""The `_meta` of a request, as the code of a feature reads it."""

import json

import pytest

from axolotl_core import Context, prompt, resource, tool
from axolotl_server import connect
from tests.support.peers.memory_peer import container_with

META = {"example.com/tenant": "acme", "hops": [1, 2]}


@tool(execution="thread")
def in_thread(context: Context) -> str:
    """Tell the metadata from a thread."""
    return json.dumps(dict(context.meta))


@tool
async def changing(context: Context) -> str:
    """Try to change the metadata."""
    with pytest.raises(TypeError):
        context.meta["example.com/tenant"] = "other"  # type: ignore[index]
    return json.dumps(dict(context.meta))


@prompt
async def greet(context: Context) -> str:
    """Tell the metadata."""
    return json.dumps(dict(context.meta))


@resource("meta://one")
async def page(context: Context) -> str:
    """Tell the metadata."""
    return json.dumps(dict(context.meta))


async def test_client_sends_metadata() -> None:
    """A test passes `meta=`, and tools in threads, prompts and resources read it."""
    async with connect(container_with((in_thread,), (greet,), (page,))) as client:
        called = await client.call("in_thread", meta=META)
        rendered = await client.get_prompt("greet", meta=META)
        read = await client.read_resource("meta://one", meta=META)
        without = await client.call("in_thread")
    assert json.loads(called.text) == META
    assert json.loads(rendered.messages[0]["content"]["text"]) == META
    assert json.loads(read.contents[0]["text"]) == META
    assert without.text == "{}"


async def test_metadata_is_read_only() -> None:
    """The code of a feature cannot change the metadata."""
    async with connect(container_with((changing,))) as client:
        outcome = await client.call("changing", meta=META)
    assert json.loads(outcome.text) == META


def test_context_without_a_server() -> None:
    """A context in a unit test has no metadata."""
    assert Context().meta == {}
