"""Properties of the message handler with random input."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axolotl_server import ServerHost
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import INITIALIZE, META, message
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.slow


class Subject:
    """A server with its own event loop, for tests with many messages."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._host = ServerHost(container_of(Echo()))
        self._loop.run_until_complete(self._host.start())

    def say(self, *messages: bytes, handshake: bool = False) -> list[Any]:
        """Send messages on a new connection and return all replies."""
        return self._loop.run_until_complete(self._say(messages, handshake))

    def close(self) -> None:
        self._loop.run_until_complete(self._host.stop())
        assert not asyncio.all_tasks(self._loop)
        self._loop.close()

    async def _say(self, messages: tuple[bytes, ...], handshake: bool) -> list[Any]:
        transport = MemoryTransport(self._host.handler)
        if handshake:
            transport.send(message("initialize", INITIALIZE, id="hello"))
            await transport.receive()
            transport.send(message("notifications/initialized", id=None))
        for one in messages:
            transport.send(one)
        replies = await transport.close(PATIENCE_SECONDS)
        assert not self._host.handler.inflight
        return [json.loads(reply) for reply in replies]


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    subject = Subject()
    yield subject
    subject.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    ["tools/list", "tools/call", "ping", "server/discover", "initialize", "notifications/cancelled", "no/such", ""]
)
IDS = st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=20).filter(str.isprintable)
NAMES = st.sampled_from(["echo", "ECHO", "nobody"])
META_VALUES = st.just(dict(META)) | st.dictionaries(
    st.sampled_from([*META, "progressToken", "io.modelcontextprotocol/clientInfo"]), JSON, max_size=3
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={"name": NAMES | JSON, "arguments": JSON, "_meta": META_VALUES | JSON, "cursor": JSON, "requestId": JSON},
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": IDS | JSON,
        "method": METHODS | JSON,
        "params": PARAMS | JSON,
        "result": JSON,
        "error": JSON,
    },
)
REQUESTS = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": IDS, "method": METHODS | st.text(max_size=20)},
    optional={"params": PARAMS | JSON},
)
NOTIFICATIONS = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": METHODS | st.text(max_size=20)}, optional={"params": PARAMS | JSON}
)


def written(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("handshake", [False, True])
@given(data=st.binary(max_size=60))
def test_random_bytes_are_survived(subject: Subject, handshake: bool, data: bytes) -> None:
    """Random bytes get at most one error, without an id."""
    replies = subject.say(data, handshake=handshake)
    assert len(replies) <= 1
    assert all("id" not in reply and "error" in reply for reply in replies)


@pytest.mark.parametrize("handshake", [False, True])
@given(value=JSON | MESSAGES | st.lists(MESSAGES, max_size=3))
@settings(max_examples=80)
def test_random_json_is_survived(subject: Subject, handshake: bool, value: Any) -> None:
    """Random JSON gets at most one reply, and the connection stays usable."""
    replies = subject.say(written(value), message("ping", id="still here"), handshake=handshake)
    assert {"jsonrpc": "2.0", "id": "still here", "result": {}} in replies
    assert len(replies) <= 2
    assert not any("Reference" in json.dumps(reply) for reply in replies)


@pytest.mark.parametrize("handshake", [False, True])
@given(request=REQUESTS)
@settings(max_examples=80)
def test_each_request_has_one_answer(subject: Subject, handshake: bool, request: dict[str, Any]) -> None:
    """A message with a valid id and a method gets exactly one reply with that id."""
    (reply,) = subject.say(written(request), handshake=handshake)
    assert reply["jsonrpc"] == "2.0"
    assert (type(reply["id"]), reply["id"]) == (type(request["id"]), request["id"])
    assert ("result" in reply) != ("error" in reply)
    if "error" in reply:
        assert reply["error"]["code"] in {-32600, -32601, -32602, -32022}
        assert isinstance(reply["error"]["message"], str)


@pytest.mark.parametrize("handshake", [False, True])
@given(notification=NOTIFICATIONS)
def test_no_notification_has_an_answer(subject: Subject, handshake: bool, notification: dict[str, Any]) -> None:
    """A message with a method and no id never gets a reply."""
    assert subject.say(written(notification), handshake=handshake) == []


@given(request=REQUESTS, garbage=st.binary(max_size=3), place=st.integers(0, 200))
def test_damaged_requests_are_survived(subject: Subject, request: dict[str, Any], garbage: bytes, place: int) -> None:
    """A damaged request gets at most one reply."""
    data = written(request)
    replies = subject.say(data[:place] + garbage + data[place:])
    assert len(replies) <= 1


@given(requests=st.lists(REQUESTS, max_size=6, unique_by=lambda request: str(request["id"])))
@settings(max_examples=40)
def test_pipelined_requests_have_one_answer_each(subject: Subject, requests: list[dict[str, Any]]) -> None:
    """Pipelined requests all get a reply."""
    replies = subject.say(*map(written, requests))
    assert sorted(str(reply["id"]) for reply in replies) == sorted(str(request["id"]) for request in requests)
