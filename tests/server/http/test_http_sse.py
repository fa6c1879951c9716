"""The HTTP+SSE transport of the first revision, which is optional."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp import Client as OfficialClient
from mcp.client.sse import sse_client

from axolotl_core import Context, ITool, NoArguments, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ConfigurationError
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import HttpApp, ServerHost
from axolotl_server.access.api_keys import hash_key
from axolotl_server.protocol.flow_control import MAX_WAITING
from tests.support.peers.session_client import INITIALIZED, Client, EventReader
from tests.support.peers.wire import INITIALIZE, call, message
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, Holding, Probe, container_of

JSON = {"Content-Type": "application/json"}
OLD = {**INITIALIZE, "protocolVersion": "2024-11-05"}


def with_sse(**http: Any) -> Mapping[str, Any]:
    return {"http": {"sse_path": "/sse", **http}}


def at(server: HttpServer, path: str) -> str:
    return f"http://127.0.0.1:{server.port}{path}"


class SseClient:
    """A client of the first revision."""

    def __init__(self, http: httpx2.AsyncClient, server: HttpServer, stream: EventReader, endpoint: str) -> None:
        self._http = http
        self._server = server
        self.stream = stream
        self.endpoint = endpoint

    async def post(self, body: bytes, **headers: str) -> httpx2.Response:
        return await self._http.post(at(self._server, self.endpoint), content=body, headers={**JSON, **headers})

    async def say(self, body: bytes) -> None:
        reply = await self.post(body)
        assert (reply.status_code, reply.content) == (202, b"")

    async def hear(self) -> Any:
        event = await self.stream.take()
        assert (event.name, event.id) == ("message", None)
        return event.message

    async def begin(self) -> Any:
        await self.say(message("initialize", OLD, id="hello"))
        reply = await self.hear()
        await self.say(INITIALIZED)
        return reply


@asynccontextmanager
async def connected(http: httpx2.AsyncClient, server: HttpServer) -> AsyncIterator[SseClient]:
    """Open a stream and read the URL for messages."""
    async with http.stream("GET", at(server, "/sse"), headers={"Accept": "text/event-stream"}) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
        stream = EventReader(response)
        event = await stream.take()
        assert (event.name, event.id) == ("endpoint", None)
        assert event.data is not None
        yield SseClient(http, server, stream, event.data)


@pytest.fixture
def probe() -> Probe:
    """A tool that waits."""
    return Probe(progress=True)


@pytest_asyncio.fixture
async def server(probe: Probe) -> AsyncIterator[HttpServer]:
    """A server with both transports."""
    async with serving(container_of(Echo(), probe), with_sse()) as running:
        yield running


async def test_a_conversation(server: HttpServer, http: httpx2.AsyncClient, probe: Probe) -> None:
    """The first event names the URL for messages, and replies come on the stream."""
    async with connected(http, server) as client:
        assert client.endpoint.startswith("/sse/messages?session=")
        assert (await client.begin())["result"]["protocolVersion"] == "2024-11-05"
        await client.say(message("tools/list", id=2))
        assert [tool["name"] for tool in (await client.hear())["result"]["tools"]] == ["echo", "probe"]
        await client.say(call("probe", id=3, token="t", handshake=True))
        assert (await client.hear())["params"]["progressToken"] == "t"
        await client.say(call("echo", {"text": "meanwhile"}, id=4, handshake=True))
        assert (await client.hear())["id"] == 4
        probe.release.set()
        assert (await client.hear())["id"] == 3
        server.host.registry.register(SchemaTool("fresh", {}, print))
        assert await client.hear() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        await client.say(b"nonsense")
        assert (await client.hear())["error"]["code"] == -32700


async def test_the_official_client(server: HttpServer) -> None:
    """The official client of this transport connects, lists and calls."""
    transport = sse_client(at(server, "/sse"))
    async with OfficialClient(transport, mode="legacy", read_timeout_seconds=PATIENCE_SECONDS) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "probe"]
        result = await client.call_tool("echo", {"text": "hällo"})
        assert result.content[0].text == "hällo"  # type: ignore[union-attr]


async def test_both_transports_at_once(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Both transports work at the same time, and their sessions are separate."""
    newer = Client(http, server.url)
    await newer.begin()
    async with connected(http, server) as older:
        await older.begin()
        assert (await newer.post(call("echo", {"text": "x"}, handshake=True))).status_code == 200
        token = older.endpoint.rpartition("=")[2]
        assert (await newer.post(message("ping"), **{"Mcp-Session-Id": token})).status_code == 404
        path = f"/sse/messages?session={newer.headers['Mcp-Session-Id']}"
        assert (await http.post(at(server, path), content=message("ping"), headers=JSON)).status_code == 404


async def test_clients_get_only_their_own_replies(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Each client has its own URL for messages and gets its own replies."""
    async with connected(http, server) as one, connected(http, server) as other:
        assert one.endpoint != other.endpoint
        await one.begin()
        await other.begin()
        await one.say(call("echo", {"text": "one"}, id=1, handshake=True))
        await other.say(call("echo", {"text": "other"}, id=1, handshake=True))
        assert (await one.hear())["result"]["content"][0]["text"] == "one"
        assert (await other.hear())["result"]["content"][0]["text"] == "other"


async def test_it_is_off_unless_it_is_asked_for(http: httpx2.AsyncClient) -> None:
    """Without a path, the transport is off."""
    async with serving(container_of(Echo())) as server:
        for path in ("/sse", "/sse/messages?session=x"):
            assert (await http.get(at(server, path), headers={"Accept": "text/event-stream"})).status_code == 404
            assert (await http.post(at(server, path), content=message("ping"), headers=JSON)).status_code == 404


async def test_an_unknown_session_is_not_found(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Messages without a stream are rejected."""
    for query in ("", "?session=", "?session=nobody", "?session=%00", "?token=x", "?session=a&session=b"):
        reply = await http.post(at(server, f"/sse/messages{query}"), content=message("ping"), headers=JSON)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, -32600)


async def test_a_closed_stream_has_no_url(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """When the stream is closed, its URL is gone."""
    async with connected(http, server) as client:
        await client.begin()
    await until(lambda: not len(server.app.sessions))
    assert (await client.post(message("ping"))).status_code == 404


async def test_closing_the_stream_stops_its_calls(server: HttpServer, http: httpx2.AsyncClient, probe: Probe) -> None:
    """Closing the stream stops its calls."""
    async with connected(http, server) as client:
        await client.begin()
        await client.say(call("probe", handshake=True))
        await probe.started.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await probe.cancelled.wait()
    assert probe.context is not None
    assert probe.context.cancel_reason is CancelReason.DISCONNECT
    await until(lambda: not len(server.app.sessions))
    assert len(server.host.handler.inflight) == 0


class SlowPost:
    """A message whose headers arrive at once, and whose body arrives when it is released."""

    def __init__(self, server: HttpServer, client: SseClient, **headers: str) -> None:
        self._server = server
        self._path, _, self._query = client.endpoint.partition("?")
        self._headers = {"Host": "localhost", **JSON, **headers}
        self.is_waiting = asyncio.Event()
        self.release = asyncio.Event()

    async def send(self, body: bytes) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            self.is_waiting.set()
            await self.release.wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        scope = {"type": "http", "method": "POST", "path": self._path, "headers": headers}
        await self._server.app({**scope, "query_string": self._query.encode()}, receive, send)
        status: int = sent[0]["status"]
        return status


async def test_a_message_whose_stream_ends_before_it_is_complete(
    server: HttpServer, http: httpx2.AsyncClient, probe: Probe
) -> None:
    """A call whose body is complete after the stream has ended does not run, because nobody could stop it."""
    async with connected(http, server) as client:
        await client.begin()
        post = SlowPost(server, client)
        sending = asyncio.ensure_future(post.send(call("probe", handshake=True)))
        await post.is_waiting.wait()
    await until(lambda: not len(server.app.sessions))
    post.release.set()
    assert await sending == 404
    assert not probe.started.is_set()


async def test_a_message_is_handled_with_its_own_token(http: httpx2.AsyncClient) -> None:
    """A message that waits for its body does not get the scopes of a token that another message sends meanwhile."""

    @tool(scopes=frozenset({"payments"}))
    async def pay() -> str:
        """Pay."""
        return "paid"

    narrow, wide = "narrow-key-of-ada", "wide-key-of-ada"
    keys = {
        "narrow": {"hash": hash_key(narrow), "subject": "ada"},
        "wide": {"hash": hash_key(wide), "subject": "ada", "scopes": ["payments"]},
    }
    http.headers["Authorization"] = f"Bearer {narrow}"
    settings = {**with_sse(), "auth": {"api_keys": keys}}
    async with serving(container_of(pay), settings) as server, connected(http, server) as client:
        await client.begin()
        post = SlowPost(server, client, Authorization=f"Bearer {narrow}")
        sending = asyncio.ensure_future(post.send(call("pay", id="narrow", handshake=True)))
        await post.is_waiting.wait()
        paying = await client.post(call("pay", id="wide", handshake=True), Authorization=f"Bearer {wide}")
        assert paying.status_code == 202
        paid = await client.hear()
        assert (paid["id"], paid["result"]["content"][0]["text"]) == ("wide", "paid")
        post.release.set()
        assert await sending == 202
        refused = await client.hear()
        assert (refused["id"], refused["error"]["message"]) == ("narrow", "Tool not found: pay")


async def test_wrong_methods(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Each endpoint has one method, and the error names it."""
    probing = await http.post(at(server, "/sse"), content=message("initialize", OLD), headers=JSON)
    assert (probing.status_code, probing.headers["allow"]) == (405, "GET")
    reading = await http.get(at(server, "/sse/messages"))
    assert (reading.status_code, reading.headers["allow"]) == (405, "POST")


async def test_requests_are_checked(http: httpx2.AsyncClient) -> None:
    """Hosts, origins, media types and sizes are checked here too."""
    settings = {**with_sse(), "limits": {"max_message_bytes": 1000}}
    async with serving(container_of(Echo()), settings) as server:
        for wrong, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
            headers = {"Accept": "text/event-stream", **wrong}
            assert (await http.get(at(server, "/sse"), headers=headers)).status_code == status
        assert (await http.get(at(server, "/sse"), headers={"Accept": "text/html"})).status_code == 406
        async with connected(http, server) as client:
            await client.begin()
            ping = message("ping", id=2)
            assert (await client.post(ping, Host="evil.example")).status_code == 421
            assert (await client.post(ping, Origin="https://evil.example")).status_code == 403
            assert (await client.post(ping, **{"Content-Type": "text/plain"})).status_code == 415
            assert (await client.post(call("echo", {"text": "x" * 1000}, handshake=True))).status_code == 413
            await client.say(message("ping", id=3))
            assert (await client.hear())["id"] == 3


async def test_streams_count_as_sessions(http: httpx2.AsyncClient) -> None:
    """A stream counts as a session until it ends."""
    async with serving(container_of(Echo()), {**with_sse(), "sessions": {"maximum": 2}}) as server:
        newer, latecomer = Client(http, server.url), Client(http, server.url)
        await newer.begin()
        async with connected(http, server):
            assert (await latecomer.begin()).status_code == 503
            refused = await http.get(at(server, "/sse"), headers={"Accept": "text/event-stream"})
            assert refused.status_code == 503
        await until(lambda: len(server.app.sessions) == 1)
        assert (await latecomer.begin()).status_code == 200


async def test_the_end_of_the_server(server: HttpServer, http: httpx2.AsyncClient, probe: Probe) -> None:
    """On shutdown, a running call is answered before its stream ends, and new streams are rejected."""
    async with connected(http, server) as client, connected(http, server) as idle:
        await client.begin()
        await client.say(call("probe", id=7, handshake=True))
        await probe.started.wait()
        server.app.sessions.end_streams()
        assert await idle.stream.rest() == []
        refused = await http.get(at(server, "/sse"), headers={"Accept": "text/event-stream"})
        assert refused.status_code == 503
        probe.release.set()
        assert [event.message["id"] for event in await client.stream.rest()] == [7]


async def test_an_idle_stream_is_kept_alive(http: httpx2.AsyncClient) -> None:
    """An idle stream gets comments."""
    async with (
        serving(container_of(Echo()), with_sse(keep_alive_seconds=0.02)) as server,
        http.stream("GET", at(server, "/sse"), headers={"Accept": "text/event-stream"}) as response,
    ):
        lines = response.aiter_lines()
        while await anext(lines) != ": keep-alive":
            pass


class AsgiConnection:
    """A client without a network that reads nothing until it is released."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.reading = asyncio.Event()
        self.frames: list[bytes] = []

    async def listen(self) -> None:
        async def receive() -> Any:
            return await asyncio.Event().wait()

        async def send(event: Any) -> None:
            if self.frames:
                await self.reading.wait()
            self.frames += filter(None, [event.get("body")])

        await self._app(self._scope("GET", "/sse"), receive, send)

    async def post(self, body: bytes) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        path, _, query = self.frames[0].partition(b"data: ")[2].strip().decode().partition("?")
        await self._app({**self._scope("POST", path), "query_string": query.encode()}, receive, send)
        status: int = sent[0]["status"]
        return status

    def _scope(self, method: str, path: str) -> dict[str, Any]:
        headers = [(b"host", b"localhost"), (b"accept", b"*/*"), (b"content-type", b"application/json")]
        return {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}


async def test_a_client_that_does_not_read_is_rejected(probe: Probe) -> None:
    """A client that does not read its replies is rejected until it does, and none is lost."""
    async with ServerHost(container_of(Echo()), flags=with_sse()) as host:
        app = HttpApp(host.handler, host.settings)
        client = AsgiConnection(app)
        listening = asyncio.ensure_future(client.listen())
        await until(lambda: client.frames)
        asked = 0
        while await client.post(message("ping", id=asked)) == 202:
            asked += 1
            await asyncio.sleep(0)
        assert MAX_WAITING <= asked <= MAX_WAITING + 10
        client.reading.set()
        await until(lambda: len(client.frames) == asked + 1)
        answered = [json.loads(frame.partition(b"data: ")[2])["id"] for frame in client.frames[1:]]
        assert answered == list(range(asked))
        assert await client.post(message("ping", id=asked)) == 202
        app.sessions.end_streams()
        await listening


class Swell(ITool[NoArguments, str]):
    """Returns a large text as soon as it is released."""

    name = "swell"

    def __init__(self) -> None:
        self.releases = asyncio.Semaphore(0)

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        await self.releases.acquire()
        return "x" * 2**20


async def test_large_replies_that_nobody_reads_are_bounded() -> None:
    """A client that leaves megabytes unread gets no more calls, and replies to running ones end its stream."""
    swell = Swell()
    async with ServerHost(container_of(swell), flags=with_sse()) as host:
        app = HttpApp(host.handler, host.settings)
        client = AsgiConnection(app)
        listening = asyncio.ensure_future(client.listen())
        await until(lambda: client.frames)
        assert await client.post(message("initialize", INITIALIZE, id="hello")) == 202
        assert await client.post(message("notifications/initialized", id=None)) == 202
        (connection,) = app._sse._by_id.values()  # type: ignore[union-attr]
        for number in range(40):
            assert await client.post(call("swell", id=number, handshake=True)) == 202
        stream, sizes, statuses, running = connection.stream, [0], set(), host.handler.inflight
        await until(lambda: len(running) == 40)
        while stream.open:
            swell.releases.release()
            await until(lambda: len(running) + len(sizes) <= 40 or not stream.open)  # one more call has ended
            sizes.append(stream.waiting_bytes)
            statuses.add(await client.post(message("ping", id="p")))
        assert 2**23 < max(sizes) <= 2**24
        assert (sizes[-1], statuses) == (0, {202, 503, 404})
        client.reading.set()
        await listening


@pytest.mark.parametrize("shares", [False, True])
async def test_large_bodies_of_running_calls_are_limited(
    shares: bool, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts with large arguments count until their calls end, as on the other transport; small ones do not."""
    if shares:
        monkeypatch.setattr("axolotl_server.protocol.fair_share.share_of_address", lambda address: (address,))
    holding, running = Holding(), 1 if shares else 3
    settings = with_sse(max_buffer_bytes=6 * 2**20)
    async with serving(container_of(holding, Echo()), settings) as server, connected(http, server) as client:
        await client.begin()
        large = [call("holding", {"text": "x" * (2**21 - 1024)}, id=id, handshake=True) for id in range(4)]
        for body in large[:running]:
            await client.say(body)
        await until(lambda: holding.running == running)
        refused = await client.post(large[3])
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"]["data"] == {"reason": "overloaded", "retryAfterMs": 1000}
        await client.say(call("echo", {"text": "small"}, id="small", handshake=True))
        assert (await client.hear())["id"] == "small"
        holding.release.set()
        assert {(await client.hear())["id"] for _ in range(running)} == set(range(running))
        await client.say(large[3])
        assert (await client.hear())["id"] == 3
        await until(lambda: server.app.running_bodies.used == 0)


async def test_large_bodies_of_a_client_that_has_left(http: httpx2.AsyncClient) -> None:
    """Calls that are stopped because their client has left no longer count."""
    holding = Holding()
    async with serving(container_of(holding), with_sse()) as server:
        async with connected(http, server) as client:
            await client.begin()
            await client.say(call("holding", {"text": "x" * 2**20}, id=1, handshake=True))
            await until(lambda: holding.running == 1)
            assert server.app.running_bodies.used > 2**20
        await until(lambda: server.app.running_bodies.used == 0)


async def test_a_large_body_without_a_message(http: httpx2.AsyncClient) -> None:
    """A body that nobody has to answer counts for nothing."""
    async with serving(container_of(Echo()), with_sse()) as server, connected(http, server) as client:
        await client.say(b" " * 2**20)
        assert server.app.running_bodies.used == 0


@pytest.mark.parametrize("paths", [("/mcp", "/mcp"), ("/sse/messages", "/sse"), ("/mcp", "sse"), ("/messages", "/")])
async def test_paths_must_not_meet(paths: tuple[str, str]) -> None:
    """The server does not start if a path of this transport is invalid or already used."""
    path, sse_path = paths
    with pytest.raises(ConfigurationError, match="sse_path"):
        async with ServerHost(container_of(Echo()), flags={"http": {"path": path, "sse_path": sse_path}}):
            pass
