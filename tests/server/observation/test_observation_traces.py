"""Spans: attributes, parents and confidentiality."""

from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode, format_trace_id

from axolotl_core import Context, prompt, resource, tool
from tests.support.endless_tools import Stuck
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.session_client import Client
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.servers.authenticated_server import gated
from tests.support.servers.observed_server import SECRET, Telemetry
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer
from tests.support.tools import Echo, Probe, container_of, crash, refuse

TRACES: dict[str, Any] = {"telemetry": {"traces": True}}
BODY = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEADER = "00-11111111111111111111111111111111-2222222222222222-01"


@tool
async def inner(context: Context) -> str:
    """Create a span."""
    with trace.get_tracer_provider().get_tracer("tool").start_as_current_span("inner work"):
        return "done"


@tool(execution="thread")
def inner_in_thread(context: Context) -> str:
    """Create a span in a thread."""
    with trace.get_tracer_provider().get_tracer("tool").start_as_current_span("thread work"):
        return "done"


@prompt
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Dear {name}"


@resource("note://{number}")
async def note(number: str) -> str:
    """Give a note."""
    return "note"


def everything() -> Any:
    return container_with((Echo(), crash, refuse, inner, inner_in_thread), (greet,), (note,))


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return format_trace_id(span.context.trace_id)


async def post(http: httpx2.AsyncClient, server: HttpServer, body: bytes, **headers: str) -> Any:
    reply = await http.post(server.url, content=body, headers={**mirrored(name="echo"), **headers})
    return reply.json()


async def test_a_call_is_a_span(telemetry: Telemetry) -> None:
    """The span of a call has the name, kind and attributes of the conventions, and no others."""
    async with gated({}, everything(), **TRACES) as server, _client() as http:
        await post(http, server, call("echo", {"text": SECRET}, id="r-7"))
    span = telemetry.span("tools/call echo")
    assert span.kind is SpanKind.SERVER
    assert span.status.status_code is StatusCode.UNSET
    assert span.parent is None
    assert said(span) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "jsonrpc.request.id": "r-7",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }


async def test_every_operation_is_a_span(telemetry: Telemetry) -> None:
    """Prompts, resources and lists have spans too; URIs are not part of span names."""
    async with conversing(everything(), settings=TRACES) as host:
        peer = Peer(host)
        await peer.ask("prompts/get", {"name": "GREET", "arguments": {"name": "Ada"}})
        await peer.ask("resources/read", {"uri": f"note://{SECRET}"})
        await peer.ask("tools/list")
        await peer.close()
    assert said(telemetry.span("prompts/get greet"))["gen_ai.prompt.name"] == "greet"
    assert said(telemetry.span("resources/read"))["mcp.resource.uri"] == "note://{number}"
    assert said(telemetry.span("tools/list"))["network.transport"] == "pipe"
    assert len(telemetry.spans) == 3


@pytest.mark.parametrize(
    ("name", "arguments", "error", "outcome"),
    [
        ("crash", {"word": SECRET}, "tool_error", "failed"),
        ("refuse", {"word": SECRET}, "tool_error", "error"),
        ("refuse", {SECRET: SECRET}, "tool_error", "invalid_arguments"),
    ],
)
async def test_failures(telemetry: Telemetry, name: str, arguments: Any, error: str, outcome: str) -> None:
    """A failed tool sets the error status and type, without arguments or messages."""
    async with conversing(everything(), settings=TRACES) as host:
        await Peer(host).ask("tools/call", {"name": name, "arguments": arguments})
    span = telemetry.span(f"tools/call {name}")
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert said(span)["error.type"] == error
    assert said(span)["axolotl.outcome"] == outcome
    assert "rpc.response.status_code" not in said(span)
    assert not span.events
    assert SECRET not in span.to_json()


async def test_a_span_names_the_reference_of_a_hidden_failure(telemetry: Telemetry) -> None:
    """The span of a hidden failure has its reference."""
    async with conversing(everything(), settings=TRACES) as host:
        reply = await Peer(host).ask("tools/call", {"name": "crash", "arguments": {"word": "x"}})
    reference = reply["result"]["_meta"]["axolotl/reference"]
    assert said(telemetry.span("tools/call crash"))["axolotl.reference"] == reference


async def test_errors_of_the_protocol(telemetry: Telemetry) -> None:
    """A protocol error has its code; unknown names appear nowhere in a span."""
    async with conversing(everything(), settings=TRACES) as host:
        peer = Peer(host)
        await peer.ask("tools/call", {"name": SECRET})
        await peer.ask(SECRET)
        unserved: dict[str, Any] = {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}
        await peer.ask("tools/list", **unserved)
        await peer.close()
    attributes = {span.name: said(span) for span in telemetry.spans}
    assert attributes["tools/call"]["error.type"] == attributes["tools/call"]["rpc.response.status_code"] == "-32602"
    assert attributes["tools/call"]["gen_ai.tool.name"] == "_unknown"
    assert attributes["_unknown"]["error.type"] == "-32601"
    assert attributes["tools/list"]["error.type"] == "-32022"
    assert not [span for span in telemetry.spans if SECRET in span.to_json()]


@pytest.mark.parametrize(
    ("meta", "headers", "expected"),
    [
        ({"traceparent": BODY, "tracestate": "a=b"}, {}, BODY),
        ({}, {"traceparent": HEADER, "tracestate": "a=b"}, HEADER),
        ({"traceparent": BODY, "tracestate": "a=b"}, {"traceparent": HEADER, "tracestate": "c=d"}, BODY),
        ({"traceparent": "nonsense"}, {"traceparent": HEADER, "tracestate": "a=b"}, HEADER),
    ],
)
async def test_the_parent_comes_with_the_request(telemetry: Telemetry, meta: Any, headers: Any, expected: str) -> None:
    """The parent of a span comes from `_meta`, or from the headers."""
    body = message("tools/call", {"name": "echo", "arguments": {}, "_meta": {**META, **meta}})
    async with gated({}, everything(), **TRACES) as server, _client() as http:
        await post(http, server, body, **headers)
    span = telemetry.span("tools/call echo")
    assert span.parent is not None
    assert span.parent.is_remote
    assert trace_of(span) == expected.split("-")[1]
    assert f"{span.parent.span_id:016x}" == expected.split("-")[2]
    assert span.parent.trace_state.get("a") == "b"


@pytest.mark.parametrize("headers", [{}, {"traceparent": "nonsense"}, {"tracestate": "a=b"}])
async def test_a_request_without_a_trace_begins_one(telemetry: Telemetry, headers: Any) -> None:
    """Without a valid trace context, a new trace starts."""
    async with gated({}, everything(), **TRACES) as server, _client() as http:
        await post(http, server, call("echo"), **headers)
    assert telemetry.span("tools/call echo").parent is None


async def test_a_span_around_the_server(telemetry: Telemetry) -> None:
    """A span of the HTTP server is the parent, or linked if `_meta` names another."""
    async with conversing(everything(), settings=TRACES) as host:
        with telemetry.tracers.get_tracer("http").start_as_current_span("POST /mcp"):
            plain, traced = Peer(host), Peer(host)
            await plain.ask("tools/list")
            await traced.ask("prompts/list", traceparent=BODY)
    around = telemetry.span("POST /mcp").context
    assert around is not None
    parent = telemetry.span("tools/list").parent
    assert parent is not None
    assert parent.span_id == around.span_id
    linked = telemetry.span("prompts/list")
    assert trace_of(linked) == BODY.split("-")[1]
    assert [link.context.span_id for link in linked.links] == [around.span_id]


async def test_what_a_tool_does_is_below_its_call(telemetry: Telemetry) -> None:
    """Spans that a tool creates are children of its call, also in threads."""
    async with conversing(everything(), settings=TRACES) as host:
        peer = Peer(host)
        await peer.ask("tools/call", {"name": "inner"}, baggage="user=mallory", traceparent=BODY)
        await peer.ask("tools/call", {"name": "inner_in_thread"})
        await peer.close()
    for child, parent in (("inner work", "inner"), ("thread work", "inner_in_thread")):
        above = telemetry.span(child).parent
        context = telemetry.span(f"tools/call {parent}").context
        assert above is not None
        assert context is not None
        assert above.span_id == context.span_id


async def test_baggage_is_not_believed(telemetry: Telemetry) -> None:
    """Baggage of the client is not accepted."""
    from opentelemetry import baggage

    heard: list[Any] = []

    @tool
    async def listen() -> str:
        """Look at the baggage."""
        heard.append(dict(baggage.get_all()))
        return ""

    async with conversing(container_of(listen), settings=TRACES) as host:
        await Peer(host).ask("tools/call", {"name": "listen"}, traceparent=BODY, baggage="user=mallory")
    assert heard == [{}]


async def test_a_session_is_named_by_a_digest(telemetry: Telemetry) -> None:
    """Spans of a session share a digest, not the session id."""
    async with gated({}, everything(), **TRACES) as server, _client() as http:
        client = Client(http, server.url)
        await client.begin()
        for _ in range(2):
            await client.post(call("echo", handshake=True))
    names = {said(span).get("mcp.session.id") for span in telemetry.spans if span.name != "initialize"}
    [name] = names
    assert len(str(name)) == 32
    assert not [span for span in telemetry.spans if client.headers["Mcp-Session-Id"] in span.to_json()]


async def test_an_answer_without_the_code_ends_the_span(telemetry: Telemetry) -> None:
    """The span of an abandoned call ends once, with the reply."""
    stuck = Stuck()
    async with conversing(container_of(stuck), settings=TRACES) as host:
        await Peer(host).ask("tools/call", {"name": "stuck"})
        span = telemetry.span("tools/call stuck")
        stuck.release.set()
        await stuck.ended.wait()
    assert said(span)["axolotl.outcome"] == "abandoned"
    assert said(span)["error.type"] == "tool_error"
    assert len(telemetry.spans) == 1


async def test_a_cancelled_call(telemetry: Telemetry) -> None:
    """The span of a canceled call says so."""
    probe = Probe()
    async with conversing(container_of(probe), settings=TRACES) as host:
        peer = await Peer(host).shake_hands()
        peer.call("probe", id=7)
        await probe.started.wait()
        peer.cancel(7)
        await peer.close()
    assert said(telemetry.span("tools/call probe"))["error.type"] == "cancelled"
    assert said(telemetry.span("initialize"))["mcp.method.name"] == "initialize"


async def test_a_sampler_sees_what_is_called(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A span that is not sampled does not change the reply."""
    dropping = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: dropping)
    async with conversing(everything(), settings=TRACES) as host:
        reply = await Peer(host).ask("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    assert reply["result"]["content"][0]["text"] == "a"
    assert telemetry.spans == ()


def _client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS)
