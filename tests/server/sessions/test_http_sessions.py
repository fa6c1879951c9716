"""Sessions of HTTP clients that use the handshake."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.peers.session_client import INITIALIZED, Client
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, Probe, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with default settings."""
    async with serving(container_of(Echo())) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client without a session."""
    return Client(http, server.url)


async def event_of(lines: AsyncIterator[str]) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for line in lines:
            if line.startswith("data: "):
                return json.loads(line[6:])
    raise AssertionError("the stream ended")


async def test_a_handshake_begins_a_session(client: Client) -> None:
    """The reply to initialize has a random session id; later replies have none."""
    reply = await client.begin()
    session_id = reply.headers["mcp-session-id"]
    assert len(session_id) >= 32
    assert session_id.isascii()
    assert session_id.isprintable()
    assert "mcp-session-id" not in (await client.post(call("echo", handshake=True))).headers
    another = Client(client.http, client.url)
    assert (await another.begin()).headers["mcp-session-id"] != session_id


async def test_a_failed_handshake_begins_no_session(client: Client, server: HttpServer) -> None:
    """A rejected initialize creates no session."""
    before = len(server.app.sessions)
    reply = await client.post(message("initialize", {"protocolVersion": 1}))
    assert "mcp-session-id" not in reply.headers
    assert len(server.app.sessions) == before


@pytest.mark.parametrize("body", [call("echo", handshake=True), INITIALIZED, message("tools/list")])
async def test_a_request_without_a_session_is_refused(client: Client, body: bytes) -> None:
    """A request without a handshake is rejected, except ping."""
    assert (await client.post(body)).status_code == 400
    assert (await client.post(message("ping"))).status_code == 200


@pytest.mark.parametrize("session", ["nobody", "", "0" * 32, "x" * 5000, "\x80"])
async def test_an_unknown_session_is_not_found(client: Client, session: str) -> None:
    """An unknown session is 404, so that the client initializes again."""
    header = {"Mcp-Session-Id": session.encode("latin-1")}
    for body in (call("echo", handshake=True), message("ping"), INITIALIZED):
        reply = await client.http.post(client.url, content=body, headers={**JSON_HEADERS, **header})  # type: ignore[arg-type]
        assert reply.status_code == 404


async def test_a_session_that_is_named_twice_is_refused(client: Client) -> None:
    """Two session headers are rejected, even if both are correct."""
    await client.begin()
    pairs = [*JSON_HEADERS.items(), *client.headers.items(), *client.headers.items()]
    reply = await client.http.post(client.url, content=message("ping"), headers=pairs)
    assert reply.status_code == 400


async def test_a_session_can_be_ended(client: Client) -> None:
    """After DELETE the session no longer exists."""
    await client.begin()
    assert (await client.end()).status_code == 200
    assert (await client.post(message("ping"))).status_code == 404
    assert (await client.end()).status_code == 404


async def test_ending_needs_a_session(client: Client) -> None:
    """DELETE without a session is an error."""
    assert (await client.end()).status_code == 400


async def test_the_error_of_a_missing_session_echoes_the_request(client: Client) -> None:
    """The error about a missing session has the id of the request."""
    reply = await client.post(call("echo", id="me", handshake=True))
    assert reply.json()["id"] == "me"


async def test_an_unknown_version_header_is_refused(client: Client) -> None:
    """An unknown version header is 400, with or without a session."""
    await client.begin()
    assert (await client.post(message("ping"), **{"MCP-Protocol-Version": "1999-01-01"})).status_code == 400
    assert (await client.post(message("ping"), **{"MCP-Protocol-Version": "2025-06-18"})).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_only_handshake_versions_have_sessions(client: Client, method: str) -> None:
    """A stream or DELETE with another version is rejected, and the session continues."""
    await client.begin()
    headers = {**client.headers, "Accept": "text/event-stream", "MCP-Protocol-Version": "1999-01-01"}
    assert (await client.http.request(method, client.url, headers=headers)).status_code == 400
    assert (await client.end()).status_code == 200


async def test_a_handshake_may_name_any_version_in_its_header(client: Client) -> None:
    """A version header of initialize is ignored; the body counts."""
    headers = {"MCP-Protocol-Version": "2026-07-28"}
    assert (await client.post(message("initialize", INITIALIZE), **headers)).status_code == 200


async def test_a_handshake_inside_a_session_is_refused(client: Client) -> None:
    """A second handshake in a session is rejected."""
    await client.begin()
    reply = await client.post(message("initialize", INITIALIZE))
    assert reply.status_code == 400
    assert "mcp-session-id" not in reply.headers


async def test_a_response_is_accepted(client: Client) -> None:
    """A client's response is accepted only in its session."""
    body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert (await client.post(body)).status_code == 400
    await client.begin()
    reply = await client.post(body)
    assert (reply.status_code, reply.content) == (202, b"")


async def test_sessions_do_not_see_each_other(client: Client, http: httpx2.AsyncClient) -> None:
    """Each session keeps its negotiated revision."""
    older, newer = Client(http, client.url), Client(http, client.url)
    await older.begin("2025-06-18")
    await newer.begin("2025-11-25")
    wrong = call("echo", {"text": 1}, handshake=True)
    assert "error" in (await older.post(wrong)).json()
    assert "result" in (await newer.post(wrong)).json()


async def test_there_are_only_so_many_sessions(http: httpx2.AsyncClient) -> None:
    """Beyond the limit, a handshake is rejected until a session ends."""
    async with serving(container_of(Echo()), {"sessions": {"maximum": 2}}) as server:
        clients = [Client(http, server.url) for _ in range(3)]
        assert [(await client.begin()).status_code for client in clients] == [200, 200, 503]
        assert (await clients[0].end()).status_code == 200
        assert (await clients[2].begin()).status_code == 200


async def test_an_idle_session_makes_room(http: httpx2.AsyncClient) -> None:
    """An idle session is dropped when its place is needed."""
    async with serving(container_of(Echo()), {"sessions": {"maximum": 1, "idle_seconds": 1000}}) as server:
        first, second = Client(http, server.url), Client(http, server.url)
        await first.begin()
        (session,) = server.app.sessions._by_id.values()
        session.last_used -= 1001
        assert (await second.begin()).status_code == 200
        assert (await first.post(message("ping"))).status_code == 404


async def test_an_idle_session_expires(http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle session expires by itself."""
    async with serving(container_of(Echo()), {"sessions": {"idle_seconds": 0.05}}) as server:
        gone = asyncio.Event()
        forget = server.host.handler.disconnect

        def forget_and_tell(session: Any) -> None:
            forget(session)
            gone.set()

        monkeypatch.setattr(server.host.handler, "disconnect", forget_and_tell)
        client = Client(http, server.url)
        await client.begin()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gone.wait()
        assert (await client.post(message("ping"))).status_code == 404
        assert len(server.app.sessions) == 0


async def test_a_session_in_use_does_not_expire(http: httpx2.AsyncClient) -> None:
    """Running calls and open streams keep a session alive."""
    probe = Probe()
    async with serving(container_of(probe), {"sessions": {"idle_seconds": 1000}}) as server:
        client = Client(http, server.url)
        await client.begin()
        (session,) = server.app.sessions._by_id.values()
        running = asyncio.ensure_future(client.post(call("probe", handshake=True)))
        await probe.started.wait()
        session.last_used -= 2000
        server.app.sessions._drop_idle()
        probe.release.set()
        assert (await running).status_code == 200
        server.app.sessions._drop_idle()
        async with client.listen():
            session.last_used -= 2000
            server.app.sessions._drop_idle()
        await until(lambda: not session.in_use)
        server.app.sessions._drop_idle()
        assert (await client.post(message("ping"))).status_code == 200


async def test_a_stream_hears_of_new_tools(http: httpx2.AsyncClient) -> None:
    """The stream of a session delivers list changes."""
    async with serving(container_of(Echo())) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.listen() as stream:
            assert stream.status_code == 200
            assert stream.headers["content-type"] == "text/event-stream"
            lines = stream.aiter_lines()
            server.host.registry.register(SchemaTool("fresh", {}, print))
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            assert await event_of(lines) == changed
            listed = (await client.post(message("tools/list"))).json()["result"]["tools"]
            assert [tool["name"] for tool in listed] == ["echo", "fresh"]
            server.host.registry.unregister("ECHO")
            assert await event_of(lines) == changed
            assert "error" in (await client.post(call("echo", handshake=True))).json()


async def test_a_stream_hears_of_changes_made_in_threads(http: httpx2.AsyncClient) -> None:
    """Changes from threads are delivered too."""
    async with serving(container_of(Echo())) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.listen() as stream:
            await asyncio.to_thread(server.host.registry.register, SchemaTool("fresh", {}, print))
            assert (await event_of(stream.aiter_lines()))["method"] == "notifications/tools/list_changed"


async def test_only_ready_sessions_are_told(http: httpx2.AsyncClient) -> None:
    """Only sessions with a confirmed handshake are notified, once."""
    async with serving(container_of(Echo())) as server:
        ready, begun = Client(http, server.url), Client(http, server.url)
        await ready.begin()
        reply = await begun.post(message("initialize", INITIALIZE))
        begun.headers = {"Mcp-Session-Id": reply.headers["mcp-session-id"]}
        async with ready.listen() as told, begun.listen() as untold:
            told_lines, untold_lines = told.aiter_lines(), untold.aiter_lines()
            server.host.registry.register(SchemaTool("one", {}, print))
            await event_of(told_lines)
            await begun.post(INITIALIZED)
            server.host.registry.register(SchemaTool("two", {}, print))
            await event_of(told_lines)
            await event_of(untold_lines)
            await begun.end()
            await ready.end()
            assert [line async for line in untold_lines if line] == []
            assert [line async for line in told_lines if line] == []


async def test_a_session_has_one_stream(client: Client) -> None:
    """A second GET stream is rejected while the first is open."""
    await client.begin()
    async with client.listen() as first:
        assert first.status_code == 200
        async with client.listen() as second:
            assert second.status_code == 409
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            async with client.listen() as third:
                if third.status_code == 200:
                    break


async def test_ending_a_session_ends_its_stream(client: Client) -> None:
    """Ending a session ends its stream."""
    await client.begin("2025-06-18")
    async with client.listen() as stream:
        await client.end()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await stream.aread() == b""


async def test_a_stream_needs_a_session_and_a_taste_for_events(client: Client) -> None:
    """A GET stream needs a session and must be accepted by the client."""
    async with client.listen() as stream:
        assert stream.status_code == 400
    await client.begin()
    async with client.listen(Accept="application/json") as stream:
        assert stream.status_code == 406
    client.headers = {"Mcp-Session-Id": "nobody"}
    async with client.listen() as stream:
        assert stream.status_code == 404


@pytest.mark.parametrize(("path", "used"), [("/mcp", "/mcp/"), ("/tools/", "/tools")])
async def test_a_slash_at_the_end_does_not_matter(http: httpx2.AsyncClient, path: str, used: str) -> None:
    """Requests are served with and without a slash at the end of the path."""
    async with serving(container_of(Echo()), {"http": {"path": path}}) as server:
        client = Client(http, f"http://127.0.0.1:{server.port}{used}")
        await client.begin()
        assert (await client.post(message("tools/list"))).status_code == 200
        async with client.listen() as stream:
            assert stream.status_code == 200
        ended = await client.end()
        assert (ended.status_code, ended.content) == (200, b"")


async def test_an_idle_stream_is_kept_alive(http: httpx2.AsyncClient) -> None:
    """An idle stream gets comments."""
    async with serving(container_of(Echo()), {"http": {"keep_alive_seconds": 0.02}}) as server:
        client = Client(http, server.url)
        await client.begin("2025-06-18")
        async with client.listen() as stream, asyncio.timeout(PATIENCE_SECONDS):
            lines = [line async for line in _first(stream.aiter_lines(), 3)]
    assert lines == [": keep-alive"] * 3  # without blank lines, which some clients take for empty events


async def _first(lines: AsyncIterator[str], count: int) -> AsyncIterator[str]:
    for _ in range(count):
        yield await anext(lines)


async def test_ending_a_session_stops_its_calls(http: httpx2.AsyncClient) -> None:
    """Ending a session stops only its own calls."""
    probe = Probe()
    async with serving(container_of(probe)) as server:
        leaving, staying = Client(http, server.url), Client(http, server.url)
        await leaving.begin()
        await staying.begin()
        stopped = asyncio.ensure_future(leaving.post(call("probe", handshake=True)))
        await probe.started.wait()
        probe.started.clear()
        going_on = asyncio.ensure_future(staying.post(call("probe", handshake=True)))
        await probe.started.wait()
        await leaving.end()
        await probe.cancelled.wait()
        assert (await stopped).json()["error"]["code"] == -32800
        probe.release.set()
        assert (await going_on).json()["result"]["content"][0]["text"] == "done"


async def test_stateless_replies_carry_no_session(client: Client) -> None:
    """Stateless requests neither create nor use sessions."""
    await client.begin()
    reply = await client.http.post(
        client.url, content=call("echo"), headers={**mirrored(name="echo"), **client.headers}
    )
    assert reply.status_code == 200
    assert "mcp-session-id" not in reply.headers
    unknown = {**mirrored(name="echo"), "Mcp-Session-Id": "nobody"}
    assert (await client.http.post(client.url, content=call("echo"), headers=unknown)).status_code == 200
