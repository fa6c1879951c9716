"""Limits on what a client can send: values, batches, handshakes, tokens, and echoes in errors."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from axolotl_core import Context, tool
from axolotl_server import ServerHost
from axolotl_server.handler import BATCH_CONCURRENCY, MAX_BATCH
from axolotl_server.protocol.connection import MAX_CLIENT_BYTES
from tests.support.hostile_messages import MESSAGES
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import INITIALIZE, META, call, message
from tests.support.servers.serving import until
from tests.support.tools import Echo, container_of

MAX_SECONDS = 0.15
MAX_BYTES = 32 * 1024 * 1024
BATCHING = {**INITIALIZE, "protocolVersion": "2025-03-26"}


class Hold:
    """A tool that counts how many calls run at once."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.release = asyncio.Event()

    def tool(self) -> Any:
        @tool
        async def hold(context: Context) -> str:
            self.running += 1
            self.most = max(self.most, self.running)
            await self.release.wait()
            self.running -= 1
            return "done"

        return hold


@pytest.fixture
def hold() -> Hold:
    return Hold()


@pytest_asyncio.fixture
async def host(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerHost]:
    """A server that accepts few values."""
    monkeypatch.setattr("axolotl_server.handler.MAX_VALUES", 1000)
    async with ServerHost(container_of(Echo(), hold.tool())) as host:
        yield host


async def ask(transport: MemoryTransport, data: bytes) -> Any:
    transport.send(data)
    return json.loads(await transport.receive())


async def batching(host: ServerHost) -> MemoryTransport:
    """Open a connection with batches."""
    transport = MemoryTransport(host.handler)
    await ask(transport, message("initialize", BATCHING))
    transport.send(message("notifications/initialized", id=None))
    return transport


async def test_the_number_of_values_is_limited(host: ServerHost) -> None:
    """A message with too many values is an invalid request, with its id and the limit."""
    transport = MemoryTransport(host.handler)
    assert "result" in await ask(transport, call("echo", {"text": "x"}, id=1))
    reply = await ask(transport, call("echo", {"text": ["y"] * 1000}, id=2))
    assert (reply["id"], reply["error"]["code"]) == (2, -32600)
    assert "more than 1000 JSON values" in reply["error"]["message"]
    reply = await ask(transport, call("echo", {"text": ",[{:" * 1000}, id=3))
    assert "result" in reply


async def test_a_batch_has_a_limited_number_of_messages(host: ServerHost) -> None:
    """A batch that is too large is refused as a whole; the largest allowed one is answered."""
    transport = await batching(host)
    pings = [json.loads(message("ping", id=number)) for number in range(MAX_BATCH + 1)]
    reply = await ask(transport, json.dumps(pings).encode())
    assert reply["error"]["code"] == -32600
    assert f"the batch has {MAX_BATCH + 1} messages, but at most {MAX_BATCH}" in reply["error"]["message"]
    replies = await ask(transport, json.dumps(pings[:MAX_BATCH]).encode())
    assert [one["id"] for one in replies] == list(range(MAX_BATCH))


async def test_a_batch_runs_a_few_messages_at_a_time(host: ServerHost, hold: Hold) -> None:
    """A batch cannot take all slots of the server; its replies keep their order."""
    transport = await batching(host)
    calls = [json.loads(call("hold", id=number, handshake=True)) for number in range(30)]
    transport.send(json.dumps(calls).encode())
    await until(lambda: hold.running == BATCH_CONCURRENCY)
    assert len(host.handler.inflight) == BATCH_CONCURRENCY
    hold.release.set()
    replies = json.loads(await transport.receive())
    assert [one["id"] for one in replies] == list(range(30))
    assert hold.most == BATCH_CONCURRENCY


async def test_the_reply_to_a_batch_has_a_limited_size(host: ServerHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply that does not fit is dropped, and messages behind it do not run; each gets an error with its id."""
    monkeypatch.setattr("axolotl_server.handler.MAX_BATCH_REPLY_BYTES", 2000)
    monkeypatch.setattr("axolotl_server.handler.BATCH_CONCURRENCY", 1)
    transport = await batching(host)
    calls = [json.loads(call("echo", {"text": "x" * 800}, id=number, handshake=True)) for number in range(5)]
    notification = json.loads(message("notifications/cancelled", {"requestId": 99}, id=None))
    replies = await ask(transport, json.dumps([*calls, notification]).encode())
    assert [one["id"] for one in replies] == list(range(5))
    assert ["result" in one for one in replies] == [True, True, False, False, False]
    assert [one["error"]["data"]["executed"] for one in replies[2:]] == [True, False, False]
    assert "more than 2000 bytes; send fewer messages in one batch" in replies[3]["error"]["message"]
    assert len(await ask(transport, json.dumps(calls[:2]).encode())) == 2


async def test_a_handshake_has_a_limited_size(host: ServerHost) -> None:
    """A client cannot make the server store much about it, and can try again with less."""
    transport = MemoryTransport(host.handler)
    large = {**INITIALIZE, "capabilities": {"experimental": {"a": "x" * MAX_CLIENT_BYTES}}}
    reply = await ask(transport, message("initialize", large))
    assert reply["error"]["code"] == -32602
    assert f"at most {MAX_CLIENT_BYTES} are allowed" in reply["error"]["message"]
    assert "result" in await ask(transport, message("initialize", INITIALIZE))


async def test_a_stateless_request_has_limited_client_data(host: ServerHost) -> None:
    """What a request says about its client is limited in the same way, however large the arguments are."""
    transport = MemoryTransport(host.handler)
    key = "io.modelcontextprotocol/clientCapabilities"
    large = {**META, key: {"experimental": {"a": "x" * MAX_CLIENT_BYTES}}}
    reply = await ask(transport, message("tools/list", {"_meta": large}))
    assert (reply["error"]["code"], str(MAX_CLIENT_BYTES) in reply["error"]["message"]) == (-32602, True)
    assert "result" in await ask(transport, call("echo", {"text": "x" * 2 * MAX_CLIENT_BYTES}))


@pytest.mark.parametrize("token", ["x" * 129, 2**53])
async def test_a_progress_token_has_a_limited_size(host: ServerHost, token: int | str) -> None:
    """A progress token is repeated in each notification, so it is as short as an id."""
    transport = MemoryTransport(host.handler)
    reply = await ask(transport, call("echo", {"text": "x"}, token=token))
    assert reply["error"]["code"] == -32602
    assert '"progressToken" must be a string of at most 128 characters' in reply["error"]["message"]
    assert "result" in await ask(transport, call("echo", {"text": "x"}, token="x" * 128))


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("resources/read", {"uri": f"a://{LONG}"}, id="uri"),
        pytest.param("resources/subscribe", {"uri": f"a://{LONG}"}, id="subscription"),
        pytest.param("tools/list", {"cursor": LONG}, id="cursor"),
        pytest.param("tools/list", {"_meta": {**META, next(iter(META)): LONG}}, id="version"),
        pytest.param("tools/call", {"name": "echo", "arguments": {LONG: 1}}, id="argument"),
        pytest.param("completion/complete", {"ref": {"type": LONG}, "argument": {}}, id="reference"),
        pytest.param(
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": LONG}, "argument": {"name": "a", "value": ""}},
            id="template",
        ),
        pytest.param("logging/setLevel", {"level": LONG}, id="level"),
        pytest.param("tasks/get", {"taskId": LONG}, id="task"),
    ],
)
async def test_errors_repeat_little_of_what_a_client_sent(host: ServerHost, method: str, params: Any) -> None:
    """An error contains at most 128 characters of a client's text."""
    transport = MemoryTransport(host.handler)
    transport.send(message(method, {"_meta": META, **params}))
    reply = await transport.receive()
    assert b"x" * 129 not in reply
    assert len(reply) < 1000
    assert "error" in json.loads(reply) or json.loads(reply)["result"]["isError"]


@pytest.mark.slow
async def test_no_message_costs_much() -> None:
    """The worst messages of 4 MiB block the event loop for a short time and use little memory."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.hostile_messages", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    costs = [json.loads(line) for line in output.splitlines()]
    assert [cost["name"] for cost in costs] == list(MESSAGES)
    for cost in costs:
        assert cost["seconds"] < MAX_SECONDS, cost
        assert cost["bytes"] < MAX_BYTES, cost
        assert cost["reply_bytes"] < 2000, cost
