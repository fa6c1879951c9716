"""Resource calls: threads, timeouts, cancellation, template matching and headers."""

import asyncio
import base64
import threading
from typing import Any

import httpx2
import pytest

from axolotl_core import CancelReason, IResource, ResourceRegistry, ToolContext, resource
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.wire import META, connection, message, mirrored, raw_request, read_head
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until


@resource("plain://thread")
def plain() -> str:
    """Return the current thread."""
    return threading.current_thread().name


@resource("async://loop")
async def waiting() -> str:
    """Return the current thread."""
    return threading.current_thread().name


class Slow(IResource):
    """Waits until it is stopped, and knows the reason."""

    uri = "slow://one"
    name = "slow"

    def __init__(self, timeout_seconds: float | None = None) -> None:
        self.timeout_seconds = timeout_seconds
        self.started = asyncio.Event()
        self.reason: CancelReason | None = None

    async def read(self, context: ToolContext) -> str:
        self.started.set()
        context.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            self.reason = context.cancel_reason
        return "never"


def read(uri: str, **meta: Any) -> bytes:
    return message("resources/read", {"uri": uri, "_meta": {**META, **meta}})


def text_of(reply: Any) -> str:
    text: str = reply["result"]["contents"][0]["text"]
    return text


async def test_a_plain_function_runs_in_a_thread() -> None:
    """Synchronous functions run in a thread, asynchronous ones on the loop."""
    async with conversing(container_with(resources=(plain, waiting))) as host:
        peer = Peer(host)
        assert text_of(await peer.ask("resources/read", {"uri": "plain://thread"})).startswith("axolotl-tool")
        assert text_of(await peer.ask("resources/read", {"uri": "async://loop"})) == threading.current_thread().name


@pytest.mark.parametrize("handshake", [True, False])
async def test_a_resource_has_a_deadline(handshake: bool) -> None:
    """A resource that times out is a protocol error."""
    slow = Slow(timeout_seconds=0.01)
    async with conversing(container_with(resources=(slow,))) as host:
        peer = await Peer(host).shake_hands() if handshake else Peer(host)
        reply = await peer.ask("resources/read", {"uri": "slow://one"})
        assert reply["error"]["code"] == -32603
        assert reply["error"]["message"] == "Resource slow://one did not finish within 0.01 seconds"


@pytest.mark.parametrize("handshake", [True, False])
async def test_a_read_can_be_cancelled(handshake: bool) -> None:
    """A canceled read is stopped and gets no reply."""
    slow = Slow()
    async with conversing(container_with(resources=(slow,))) as host:
        peer = await Peer(host).shake_hands() if handshake else Peer(host)
        peer.send("resources/read", {"uri": "slow://one"}, id=7)
        await slow.started.wait()
        peer.notify("notifications/cancelled", {"requestId": 7})
        await until(lambda: not host.handler.inflight)
        assert slow.reason is CancelReason.CLIENT
        assert await peer.close() == []


async def test_a_stateless_client_that_leaves_cancels_its_read() -> None:
    """Closing the connection cancels a stateless read."""
    slow = Slow()
    async with serving(container_with(resources=(slow,)), {"http": {"watch_after_seconds": 0.01}}) as server:
        async with connection(server.port) as (reader, writer):
            headers = mirrored("resources/read", "slow://one")
            writer.write(raw_request(read("slow://one", progressToken=1), headers.items()))
            await read_head(reader)
        await until(lambda: slow.reason is CancelReason.DISCONNECT)
        await until(lambda: not server.host.handler.inflight)


@resource("shop://{+path}")
async def anything(path: str) -> str:
    """Match any path."""
    return f"anything {path}"


@resource("shop://{kind}/{number}")
async def numbered(kind: str, number: str) -> str:
    """Match two segments."""
    return f"numbered {kind} {number}"


@resource("shop://hats/{number}")
async def hat(number: str) -> str:
    """Match hats."""
    return f"hat {number}"


@resource("shop://hats/1")
async def first_hat() -> str:
    """Match one hat."""
    return "the first hat"


@pytest.mark.parametrize("order", [1, -1])
async def test_the_most_specific_template_wins(order: int) -> None:
    """The most specific resource or template matches, regardless of the order of registration."""
    found = (anything, numbered, hat, first_hat)[::order]
    expected = {
        "shop://hats/1": "the first hat",
        "shop://hats/2": "hat 2",
        "shop://shoes/2": "numbered shoes 2",
        "shop://shoes/2/left": "anything shoes/2/left",
    }
    async with conversing(container_with(resources=found)) as host:
        peer = Peer(host)
        for uri, text in expected.items():
            assert text_of(await peer.ask("resources/read", {"uri": uri})) == text


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("shop://hats/ü", 400),
        (None, 400),
        ("shop://hats/1", 400),
        ("=?base64?" + base64.b64encode("shop://hats/ü".encode()).decode() + "?=", 200),
    ],
)
async def test_the_uri_is_repeated_in_a_header(header: str | None, status: int) -> None:
    """A stateless request repeats the URI in a header, which must match."""
    headers = [(name, value) for name, value in mirrored("resources/read").items()]
    if header is not None:
        headers.append(("Mcp-Name", header))
    async with serving(container_with(resources=(hat,))) as server, connection(server.port) as (reader, writer):
        writer.write(raw_request(read("shop://hats/ü"), headers))
        assert (await read_head(reader))[0] == status


async def test_a_missing_resource_is_an_error_in_the_body() -> None:
    """A missing resource is an error in the body, not status 404."""
    async with (
        serving(container_with(resources=(hat,))) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        reply = await http.post(server.url, content=read("none://x"), headers=mirrored("resources/read", "none://x"))
        assert (reply.status_code, reply.json()["error"]["code"]) == (200, -32602)
        assert reply.json()["error"]["data"] == {"uri": "none://x"}


async def test_a_resource_that_comes_is_found_and_one_that_goes_is_not() -> None:
    """Reads see changes of the registry from any thread."""
    registry = ResourceRegistry([waiting])
    async with conversing(container_with(resource_registry=registry)) as host:
        peer = Peer(host)
        assert "error" in await peer.ask("resources/read", {"uri": "shop://hats/2"})
        await asyncio.to_thread(registry.register_range, (hat, first_hat))
        assert text_of(await peer.ask("resources/read", {"uri": "shop://hats/2"})) == "hat 2"
        listed = await peer.ask("resources/list")
        assert [one["uri"] for one in listed["result"]["resources"]] == ["async://loop", "shop://hats/1"]
        registry.unregister("shop://hats/{number}")
        assert "error" in await peer.ask("resources/read", {"uri": "shop://hats/2"})
        assert (await peer.ask("resources/templates/list"))["result"]["resourceTemplates"] == []


async def test_large_contents_arrive_completely() -> None:
    """Megabytes of binary content are sent as one base64 text."""
    data = bytes(range(256)) * 10_000

    @resource("big://one")
    async def big() -> bytes:
        """Be big."""
        return data

    async with conversing(container_with(resources=(big,))) as host:
        reply = await Peer(host).ask("resources/read", {"uri": "big://one"})
        assert base64.b64decode(reply["result"]["contents"][0]["blob"], validate=True) == data
