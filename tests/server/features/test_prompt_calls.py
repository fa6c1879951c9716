"""Prompt calls: threads, timeouts, cancellation, limits and headers."""

import asyncio
import base64
import threading
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from axolotl_core import (
    CancelReason,
    ILayer,
    Invoke,
    IPrompt,
    NoArguments,
    ToolCall,
    ToolContext,
    prompt,
    resource,
    tool,
)
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.prompts import PromptOutput
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.wire import META, connection, message, mirrored, raw_request, read_head
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until


@prompt
def plain() -> str:
    """Return the current thread."""
    return threading.current_thread().name


@prompt
async def waiting() -> str:
    """Return the current thread."""
    return threading.current_thread().name


class Slow(IPrompt[NoArguments]):
    """Waits until it is stopped, and knows the reason."""

    name = "slow"

    def __init__(self, timeout_seconds: float | None = None) -> None:
        self.timeout_seconds = timeout_seconds
        self.started = asyncio.Event()
        self.reason: CancelReason | None = None

    async def render(self, arguments: NoArguments, context: ToolContext) -> PromptOutput:
        self.started.set()
        context.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            self.reason = context.cancel_reason
        return "never"


def get(name: str, arguments: Any = None, **meta: Any) -> bytes:
    params = {"name": name, "arguments": arguments or {}, "_meta": {**META, **meta}}
    return message("prompts/get", params)


def text_of(reply: Any) -> str:
    text: str = reply["result"]["messages"][0]["content"]["text"]
    return text


async def test_a_plain_function_runs_in_a_thread() -> None:
    """Synchronous functions run in a thread, asynchronous ones on the loop."""
    async with conversing(container_with(prompts=(plain, waiting))) as host:
        peer = Peer(host)
        assert text_of(await peer.ask("prompts/get", {"name": "plain"})).startswith("axolotl-tool")
        assert text_of(await peer.ask("prompts/get", {"name": "waiting"})) == threading.current_thread().name


@pytest.mark.parametrize("handshake", [True, False])
async def test_a_prompt_has_a_deadline(handshake: bool) -> None:
    """A prompt that times out is a protocol error."""
    slow = Slow(timeout_seconds=0.01)
    async with conversing(container_with(prompts=(slow,))) as host:
        peer = await Peer(host).shake_hands() if handshake else Peer(host)
        reply = await peer.ask("prompts/get", {"name": "slow"})
        assert reply["error"]["code"] == -32603
        assert reply["error"]["message"] == "Prompt slow did not finish within 0.01 seconds"
        assert slow.reason is CancelReason.TIMEOUT


@pytest.mark.parametrize("handshake", [True, False])
async def test_a_prompt_can_be_cancelled(handshake: bool) -> None:
    """A canceled prompt is stopped and gets no reply."""
    slow = Slow()
    async with conversing(container_with(prompts=(slow,))) as host:
        peer = await Peer(host).shake_hands() if handshake else Peer(host)
        peer.send("prompts/get", {"name": "slow"}, id=7)
        await slow.started.wait()
        peer.notify("notifications/cancelled", {"requestId": 7})
        await until(lambda: not host.handler.inflight)
        assert slow.reason is CancelReason.CLIENT
        assert not peer.connection.calls
        assert await peer.close() == []


async def test_a_stateless_client_that_leaves_cancels_its_prompt() -> None:
    """Closing the connection cancels a stateless prompt request."""
    slow = Slow()
    async with serving(container_with(prompts=(slow,)), {"http": {"watch_after_seconds": 0.01}}) as server:
        async with connection(server.port) as (reader, writer):
            headers = mirrored("prompts/get", "slow")
            writer.write(raw_request(get("slow", progressToken=1), headers.items()))
            await read_head(reader)
        await until(lambda: slow.reason is CancelReason.DISCONNECT)
        await until(lambda: not server.host.handler.inflight)


class Record(ILayer):
    """Records calls."""

    def __init__(self) -> None:
        self.passed: list[tuple[str, str]] = []

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def recorded(call: ToolCall) -> Any:
            self.passed.append((spec.kind, spec.name))
            return await call_next(call)

        return recorded


async def test_layers_surround_every_kind_of_feature() -> None:
    """A layer wraps tools, prompts, resources and completions, each with its kind."""

    @tool
    async def act() -> str:
        """Be a tool."""
        return ""

    @resource("docs://one")
    async def one() -> str:
        """Be a resource."""
        return ""

    @resource("docs://made/{name}")
    async def made(name: str) -> str:
        """Be a template."""
        return ""

    record = Record()
    container = container_with((act,), (waiting,), (one, made), layers=(record,))
    async with conversing(container) as host:
        peer = Peer(host)
        await peer.ask("tools/call", {"name": "act"})
        await peer.ask("prompts/get", {"name": "waiting"})
        await peer.ask("resources/read", {"uri": "docs://one"})
        await peer.ask("resources/read", {"uri": "docs://made/x"})
        reference = {"type": "ref/resource", "uri": "docs://made/{name}"}
        await peer.ask("completion/complete", {"ref": reference, "argument": {"name": "name", "value": ""}})
    made_of = "docs://made/{name}"
    kinds = [("tool", "act"), ("prompt", "waiting"), ("resource", "docs://one")]
    assert record.passed == [*kinds, ("resource", made_of), ("completion", made_of)]


class Topic(BaseModel):
    topic: str


class Crowded(IPrompt[Topic]):
    """Allows one call at a time."""

    name = "crowded"
    max_concurrency = 1

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0

    async def render(self, arguments: Topic, context: ToolContext) -> PromptOutput:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0)
        self.inside -= 1
        return arguments.topic


async def test_prompts_wait_for_each_other_where_they_must() -> None:
    """Concurrency limits apply to prompts, with a retry hint."""
    crowded = Crowded()
    async with conversing(container_with(prompts=(crowded,))) as host:
        peer = Peer(host)
        for number in range(5):
            peer.send("prompts/get", {"name": "crowded", "arguments": {"topic": "x"}}, id=number)
        replies = [await peer.receive() for _ in range(5)]
        assert crowded.most == 1
        assert all("result" in reply or reply["error"]["code"] == -32603 for reply in replies)
        assert any("result" in reply for reply in replies)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("grüße", 400),
        (None, 400),
        ("waiting", 400),
        ("=?base64?" + base64.b64encode("grüße".encode()).decode() + "?=", 200),
    ],
)
async def test_the_name_is_repeated_in_a_header(header: str | None, status: int) -> None:
    """A stateless request repeats the prompt's name in a header, which must match."""

    @prompt(name="grüße")
    async def greetings() -> str:
        """Greet."""
        return "hello"

    headers = [(name, value) for name, value in mirrored("prompts/get").items()]
    if header is not None:
        headers.append(("Mcp-Name", header))
    async with (
        serving(container_with(prompts=(greetings, waiting))) as server,
        connection(server.port) as (reader, writer),
    ):
        writer.write(raw_request(get("grüße"), headers))
        assert (await read_head(reader))[0] == status


async def test_prompts_and_tools_share_no_names() -> None:
    """A prompt and a tool can have the same name."""

    @tool(name="both")
    async def both_tool() -> str:
        """Be a tool."""
        return "tool"

    @prompt(name="both")
    async def both_prompt() -> str:
        """Be a prompt."""
        return "prompt"

    async with (
        serving(container_with((both_tool,), (both_prompt,))) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        said = await http.post(server.url, content=get("both"), headers=mirrored("prompts/get", "both"))
        assert text_of(said.json()) == "prompt"
