"""What all kinds of features have in common: threads, timeouts, cancellation, disconnects, headers and layers."""

import asyncio
import base64
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from dependency_injector.containers import DynamicContainer

from axolotl_core import Context, prompt, resource, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_server import ServerHost
from axolotl_server.extension import Extension, ExtensionMethod
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.wire import META, connection, message, mirrored, raw_request, read_head
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until


def define_tool(work: Callable[..., Any], **options: Any) -> DynamicContainer:
    return container_with(tools=(tool(name="sample", **options)(work),))


def define_prompt(work: Callable[..., Any], **options: Any) -> DynamicContainer:
    return container_with(prompts=(prompt(name="sample", **options)(work),))


def define_resource(work: Callable[..., Any], **options: Any) -> DynamicContainer:
    return container_with(resources=(resource("docs://sample", **options)(work),))


def define_completion(work: Callable[..., Any], **options: Any) -> DynamicContainer:
    """Define a prompt whose argument is completed; a completer has no context."""

    @prompt(name="sample", **options)
    async def sample(word: str) -> str:
        return word

    def plain(value: str) -> list[Any]:
        return [work(None)]

    async def waiting(value: str) -> list[Any]:
        return [await work(None)]

    sample.completes("word")(waiting if inspect.iscoroutinefunction(work) else plain)
    return container_with(prompts=(sample,))


class Sample(Extension):
    """An extension with one method."""

    identifier = "com.example/sample"

    def __init__(self, method: ExtensionMethod) -> None:
        self._method = method

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        return {"sample/run": self._method}


def define_extension(work: Callable[..., Any]) -> DynamicContainer:
    async def run(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"text": await work(context)}

    return container_with(extensions=(Sample(run),))


@dataclass(frozen=True)
class Kind:
    """A kind of feature: how it is defined and requested, its name in errors, and the text in a result."""

    define: Callable[..., DynamicContainer]
    method: str
    params: Mapping[str, Any]
    title: str
    text_of: Callable[[Any], str]


COMPLETED = {"ref": {"type": "ref/prompt", "name": "sample"}, "argument": {"name": "word", "value": ""}}

TOOL = Kind(define_tool, "tools/call", {"name": "sample"}, "Tool sample", lambda it: it["content"][0]["text"])
PROMPT = Kind(
    define_prompt,
    "prompts/get",
    {"name": "sample"},
    "Prompt sample",
    lambda result: result["messages"][0]["content"]["text"],
)
RESOURCE = Kind(
    define_resource,
    "resources/read",
    {"uri": "docs://sample"},
    "Resource docs://sample",
    lambda result: result["contents"][0]["text"],
)
COMPLETION = Kind(
    define_completion,
    "completion/complete",
    COMPLETED,
    "Completion sample",
    lambda result: result["completion"]["values"][0],
)
EXTENSION = Kind(define_extension, "sample/run", {}, "Extension sample/run", lambda result: result["text"])

FUNCTIONS = {"tool": TOOL, "prompt": PROMPT, "resource": RESOURCE, "completion": COMPLETION}
ALL = {**FUNCTIONS, "extension": EXTENSION}
of_functions = pytest.mark.parametrize("kind", FUNCTIONS.values(), ids=FUNCTIONS)
of_every_kind = pytest.mark.parametrize("kind", ALL.values(), ids=ALL)
in_both_eras = pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])

CAPABILITIES: Mapping[str, Any] = {"extensions": {Sample.identifier: {}}}


async def connected(host: ServerHost, *, handshake: bool = False) -> Peer:
    peer = Peer(host, capabilities=CAPABILITIES)
    return await peer.shake_hands() if handshake else peer


class Slow:
    """A feature that waits until it is stopped, and knows the reason."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self._context: Context | None = None

    async def work(self, context: Context) -> str:
        self._context = context
        self.started.set()
        if context is not None:
            context.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        return "never"

    def was_stopped(self, reason: CancelReason) -> bool:
        """Return whether it was stopped for a reason; a completer has no context, so it does not know."""
        return self.stopped.is_set() and (self._context is None or self._context.cancel_reason is reason)


@of_functions
async def test_a_plain_function_runs_in_a_thread(kind: Kind) -> None:
    """Synchronous functions run in a thread, asynchronous ones on the loop."""

    def plain(context: Context) -> str:
        return threading.current_thread().name

    async def waiting(context: Context) -> str:
        return threading.current_thread().name

    for function, thread in ((plain, "axolotl-tool"), (waiting, threading.current_thread().name)):
        async with conversing(kind.define(function)) as host:
            reply = await Peer(host).ask(kind.method, kind.params)
            assert kind.text_of(reply["result"]).startswith(thread)


@in_both_eras
@of_functions
async def test_a_feature_has_a_deadline(kind: Kind, handshake: bool) -> None:
    """A feature is stopped at its own timeout; a completion has the timeout of its prompt."""
    slow = Slow()
    async with conversing(kind.define(slow.work, timeout_seconds=0.01)) as host:
        await expect_timeout(await connected(host, handshake=handshake), kind)
    assert slow.was_stopped(CancelReason.TIMEOUT)


@of_every_kind
async def test_the_settings_have_a_deadline_for_all_features(kind: Kind) -> None:
    """A feature without a timeout is stopped at the timeout of the settings."""
    slow = Slow()
    async with conversing(kind.define(slow.work), settings={"limits": {"timeout_seconds": 0.01}}) as host:
        await expect_timeout(await connected(host), kind)
    assert slow.was_stopped(CancelReason.TIMEOUT)


async def expect_timeout(peer: Peer, kind: Kind) -> None:
    """Request the feature and compare the error, which is a result for tools and a protocol error for others."""
    reply = await peer.ask(kind.method, kind.params)
    text = f"{kind.title} did not finish within 0.01 seconds"
    if kind is TOOL:
        assert reply["result"]["isError"] is True
        assert kind.text_of(reply["result"]) == text
    else:
        assert reply["error"] == {"code": -32603, "message": text, "data": {"reason": "timeout"}}


@in_both_eras
@of_every_kind
async def test_a_feature_can_be_cancelled(kind: Kind, handshake: bool) -> None:
    """A canceled request is stopped and gets no reply."""
    slow = Slow()
    async with conversing(kind.define(slow.work)) as host:
        peer = await connected(host, handshake=handshake)
        peer.send(kind.method, kind.params, id=7)
        await slow.started.wait()
        peer.cancel(7)
        await until(lambda: not host.handler.inflight)
        assert slow.was_stopped(CancelReason.CLIENT)
        assert not peer.connection.calls
        assert await peer.close() == []


@of_every_kind
async def test_a_stateless_client_that_leaves_cancels_its_request(kind: Kind) -> None:
    """Closing the connection cancels a stateless request, whose response may be a stream already."""
    slow = Slow()
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": CAPABILITIES, "progressToken": 1}
    headers = mirrored(kind.method, kind.params.get("name") or kind.params.get("uri"))
    async with serving(kind.define(slow.work)) as server:
        async with connection(server.port) as (_, writer):
            writer.write(raw_request(message(kind.method, {**kind.params, "_meta": meta}), headers.items()))
            await slow.started.wait()
        await until(lambda: slow.was_stopped(CancelReason.DISCONNECT))
        await until(lambda: not server.host.handler.inflight)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("docs://grüße", 400),
        (None, 400),
        ("docs://sample", 400),
        ("=?base64?" + base64.b64encode("docs://grüße".encode()).decode() + "?=", 200),
    ],
)
@pytest.mark.parametrize(
    ("method", "member"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
async def test_the_name_is_repeated_in_a_header(method: str, member: str, header: str | None, status: int) -> None:
    """A stateless request repeats the name or URI in a header, which must match and is encoded if necessary."""

    async def greet() -> str:
        return "hello"

    name = "docs://grüße"
    container = container_with((tool(name=name)(greet),), (prompt(name=name)(greet),), (resource(name)(greet),))
    headers = {**mirrored(method), **({} if header is None else {"Mcp-Name": header})}
    settings = {"protocol": {"ascii_names": False}}
    async with serving(container, settings) as server, connection(server.port) as (reader, writer):
        writer.write(raw_request(message(method, {member: name, "_meta": META}), headers.items()))
        assert (await read_head(reader))[0] == status


class Record(ILayer):
    """Records calls."""

    def __init__(self) -> None:
        self.passed: list[tuple[str, str]] = []

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def recorded(call: Call) -> Any:
            self.passed.append((spec.kind, spec.name))
            return await call_next(call)

        return recorded


async def test_layers_surround_every_kind_of_feature() -> None:
    """A layer wraps tools, prompts, resources and completions, each with its kind."""

    async def one() -> str:
        return ""

    @resource("docs://made/{name}")
    async def made(name: str) -> str:
        return ""

    record = Record()
    container = container_with((tool(one),), (prompt(one),), (resource("docs://one")(one), made), layers=(record,))
    async with conversing(container) as host:
        peer = Peer(host)
        await peer.ask("tools/call", {"name": "one"})
        await peer.ask("prompts/get", {"name": "one"})
        await peer.ask("resources/read", {"uri": "docs://one"})
        await peer.ask("resources/read", {"uri": "docs://made/x"})
        reference = {"type": "ref/resource", "uri": "docs://made/{name}"}
        await peer.ask("completion/complete", {"ref": reference, "argument": {"name": "name", "value": ""}})
    made_of = "docs://made/{name}"
    kinds = [("tool", "one"), ("prompt", "one"), ("resource", "docs://one")]
    assert record.passed == [*kinds, ("resource", made_of), ("completion", made_of)]


@pytest.mark.parametrize("kind", [TOOL, PROMPT, RESOURCE], ids=["tool", "prompt", "resource"])
async def test_concurrency_limits_apply(kind: Kind) -> None:
    """At most `max_concurrency` calls of a feature run; another one waits or is refused with an error."""
    inside, most = 0, 0

    async def work(context: Context) -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        return "done"

    async with conversing(kind.define(work, max_concurrency=1)) as host:
        peer = Peer(host)
        for number in range(5):
            peer.send(kind.method, kind.params, id=number)
        replies = [await peer.receive() for _ in range(5)]
    assert most == 1
    assert any("result" in reply and not reply["result"].get("isError") for reply in replies)
    assert all("result" in reply or reply["error"]["code"] == -32603 for reply in replies)


async def test_prompts_and_tools_share_no_names() -> None:
    """A prompt and a tool can have the same name."""

    async def answer() -> str:
        return "prompt"

    container = container_with((tool(name="both")(lambda: "tool"),), (prompt(name="both")(answer),))
    async with serving(container) as server, httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http:
        body = message("prompts/get", {"name": "both", "_meta": META})
        reply = await http.post(server.url, content=body, headers=mirrored("prompts/get", "both"))
        assert PROMPT.text_of(reply.json()["result"]) == "prompt"
