"""The trace context of a request, from its body or its headers."""

from typing import Any

import httpx2
import pytest

from axolotl_core import Context, prompt, resource, tool
from tests.support.peers.memory_peer import Peer, container_with, conversing, text_of
from tests.support.peers.session_client import Client
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, serving

BODY = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEADER = "00-11111111111111111111111111111111-2222222222222222-00"


def told(context: Context) -> str:
    trace = context.trace
    return "none" if trace is None else f"{trace.traceparent} {trace.tracestate} {trace.baggage}"


@tool
async def trace(context: Context) -> str:
    """Tell the trace."""
    return told(context)


@tool(execution="thread")
def trace_in_thread(context: Context) -> str:
    """Tell the trace from a thread."""
    return told(context)


@prompt
async def trace_prompt(context: Context) -> str:
    """Tell the trace."""
    return told(context)


@resource("trace://one")
async def trace_resource(context: Context) -> str:
    """Tell the trace."""
    return told(context)


def container() -> Any:
    return container_with((trace, trace_in_thread), (trace_prompt,), (trace_resource,))


@pytest.mark.parametrize(
    ("meta", "headers", "expected"),
    [
        ({}, {}, "none"),
        ({}, {"traceparent": HEADER}, f"{HEADER} None None"),
        ({}, {"traceparent": HEADER, "tracestate": "a=b", "baggage": "c=d"}, f"{HEADER} a=b c=d"),
        ({"traceparent": BODY}, {"traceparent": HEADER, "tracestate": "a=b"}, f"{BODY} None None"),
        ({"traceparent": "nonsense"}, {"traceparent": HEADER}, f"{HEADER} None None"),
        ({}, {"traceparent": "nonsense"}, "none"),
        ({}, {"tracestate": "a=b"}, "none"),
    ],
)
async def test_the_body_comes_before_the_headers(meta: Any, headers: Any, expected: str) -> None:
    """Headers are used if the body has no valid trace context."""
    body = message("tools/call", {"name": "trace", "_meta": {**META, **meta}})
    async with serving(container()) as server, httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http:
        reply = await http.post(server.url, content=body, headers={**mirrored(name="trace"), **headers})
        assert text_of(reply.json()) == expected


async def test_a_session_carries_traces_too() -> None:
    """Each request of a session has its own trace context, or none."""
    async with serving(container()) as server, httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http:
        client = Client(http, server.url)
        await client.begin()
        traced = await client.post(call("trace", handshake=True), traceparent=HEADER)
        assert text_of(traced.json()) == f"{HEADER} None None"
        assert text_of((await client.post(call("trace", handshake=True))).json()) == "none"


async def test_every_feature_learns_of_it() -> None:
    """Threads, prompts and resources have the trace context too."""
    expected = f"{BODY} None None"
    async with conversing(container()) as host:
        peer = Peer(host)
        assert text_of(await peer.ask("tools/call", {"name": "trace_in_thread"}, traceparent=BODY)) == expected
        rendered = await peer.ask("prompts/get", {"name": "trace_prompt"}, traceparent=BODY)
        assert rendered["result"]["messages"][0]["content"]["text"] == expected
        read = await peer.ask("resources/read", {"uri": "trace://one"}, traceparent=BODY)
        assert read["result"]["contents"][0]["text"] == expected
