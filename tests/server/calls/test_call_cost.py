"""The cost of a call over HTTP, in tasks and events instead of time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio

from axolotl_server import HttpApp, ServerHost
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, META, call, message, mirrored
from tests.support.servers.serving import until
from tests.support.tools import Echo, Probe, container_of


class Asgi:
    """An ASGI application without a network."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    async def ask(self, body: bytes, headers: dict[str, str]) -> list[Any]:
        """Make one request in the current task, like an ASGI server."""
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [*pairs, (b"host", b"localhost")]}
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            if incoming:
                return incoming.pop()
            return await asyncio.Event().wait()

        async def send(event: Any) -> None:
            sent.append(event)

        await self._app(scope, receive, send)
        return sent


@contextmanager
def counting_tasks() -> Iterator[list[str]]:
    """Record the name of every created task."""
    loop = asyncio.get_running_loop()
    made: list[str] = []

    def make(loop: Any, work: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **options)

    loop.set_task_factory(make)
    try:
        yield made
    finally:
        loop.set_task_factory(None)


@pytest_asyncio.fixture
async def server(probe: Probe) -> AsyncIterator[Asgi]:
    """A server with a fast tool and a slow one."""
    async with ServerHost(container_of(Echo(), probe)) as host:
        yield Asgi(HttpApp(host.handler, host.settings))


@pytest.fixture
def probe() -> Probe:
    """The slow tool."""
    return Probe(progress=True)


async def test_a_fast_call_creates_no_task(server: Asgi) -> None:
    """A fast stateless call runs in the task of its caller."""
    with counting_tasks() as made:
        start, body = await server.ask(call("echo", {"text": "x"}), mirrored(name="echo"))
    assert made == []
    assert start["status"] == 200
    assert b'"text":"x"' in body["body"]


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_other_methods_create_no_task(server: Asgi, method: str) -> None:
    """Methods other than calls create no task."""
    with counting_tasks() as made:
        await server.ask(message(method, {"_meta": META}), mirrored(method))
    assert made == []


async def test_a_call_in_a_session_creates_no_task(server: Asgi) -> None:
    """A handshake and a fast call in a session create no task."""
    with counting_tasks() as made:
        start, _ = await server.ask(message("initialize", INITIALIZE), dict(JSON_HEADERS))
        session = dict(start["headers"])[b"mcp-session-id"].decode()
        headers = {**JSON_HEADERS, "Mcp-Session-Id": session}
        await server.ask(message("notifications/initialized", id=None), headers)
        await server.ask(call("echo", handshake=True), headers)
    assert made == []


async def test_a_rejected_request_creates_no_task(server: Asgi) -> None:
    """A rejected request creates no task."""
    with counting_tasks() as made:
        for body in (b"", b"[]", b"nonsense", call("nobody"), call("echo", {"text": 1})):
            await server.ask(body, mirrored(name="echo"))
        await server.ask(call("echo"), {"Content-Type": "text/plain"})
    assert made == []


async def test_streams_and_watchers_are_created_on_demand(server: Asgi, probe: Probe) -> None:
    """Only a call with progress gets a stream, whose task exists while it writes, and only a slow call a watcher."""
    with counting_tasks() as made:
        slow = asyncio.ensure_future(server.ask(call("probe", token=1), mirrored(name="probe")))
        await probe.started.wait()
        await until(lambda: len(made) == 3)
        probe.release.set()
        await slow
    assert made == ["Asgi.ask", "EventStream._write", "until_client_leaves", "EventStream._write"]


async def test_a_whole_reply_is_two_events(server: Asgi) -> None:
    """A plain reply consists of two ASGI events."""
    sent = await server.ask(call("echo"), mirrored(name="echo"))
    assert [event["type"] for event in sent] == ["http.response.start", "http.response.body"]
