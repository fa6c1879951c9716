"""Overload by code that computes on the event loop, with a clock that only this code advances."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core import tool
from axolotl_server.access.api_keys import hash_key
from axolotl_server.http.admission import MAX_LAG_SECONDS
from tests.support.peers.wire import call, mirrored, raw_request
from tests.support.servers.serving import HttpServer, serving, until
from tests.support.tools import Echo, container_of

COST_SECONDS = 0.005
GREEDY, QUIET = "axk_key-of-a-greedy-caller", "axk_key-of-a-quiet-caller"
AUTH = {"api_keys": {"greedy": {"hash": hash_key(GREEDY)}, "quiet": {"hash": hash_key(QUIET)}}}


class Clock:
    """A clock that stands still unless code on the event loop computes."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.runs = 0

    def __call__(self) -> float:
        return self.now

    def compute(self, seconds: float) -> None:
        self.runs += 1
        self.now += seconds


@pytest.fixture(autouse=True)
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse requests as usual."""
    monkeypatch.setattr("tests.support.servers.serving.MAX_LAG_SECONDS", MAX_LAG_SECONDS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the server's admission."""
    clock = Clock()
    for module in ("app", "admission"):
        monkeypatch.setattr(f"axolotl_server.http.{module}.monotonic", clock)
    return clock


class Caller:
    """Sends many calls at once."""

    def __init__(self, server: HttpServer, clock: Clock, token: str | None = None) -> None:
        self._http = httpx2.AsyncClient(transport=httpx2.ASGITransport(server.app), base_url="http://localhost")
        self._clock = clock
        self._token = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def call(self, name: str, **arguments: Any) -> tuple[httpx2.Response, float]:
        """Call a tool, and return the response with the time when it arrived."""
        headers = {**mirrored(name=name), **self._token}
        response = await self._http.post("/mcp", content=call(name, arguments), headers=headers)
        return response, self._clock.now

    async def burst(self, count: int, name: str = "spin", **arguments: Any) -> list[tuple[httpx2.Response, float]]:
        return await asyncio.gather(*(self.call(name, **arguments) for _ in range(count)))


@asynccontextmanager
async def serve(clock: Clock, **settings: Any) -> AsyncIterator[HttpServer]:
    """Serve a tool that computes, and one that does not."""

    @tool
    async def spin(seconds: float = COST_SECONDS) -> str:
        """Compute on the event loop."""
        clock.compute(seconds)
        return "spun"

    async with serving(container_of(spin, Echo()), settings) as server:
        yield server


async def test_excess_requests_are_refused(clock: Clock) -> None:
    """Of a burst, those requests are served that fit into the longest wait; the others are refused with a hint."""
    async with serve(clock) as server:
        began = clock.now
        replies = await Caller(server, clock).burst(200)
        served = [arrived for response, arrived in replies if response.status_code == 200]
        refused = [(response, arrived) for response, arrived in replies if response.status_code == 503]
        assert len(served) + len(refused) == 200
        assert 20 <= len(served) == clock.runs <= 40
        assert max(served) - began < 0.2
        for response, arrived in refused:
            assert arrived - began < 0.05
            assert response.headers["retry-after"] == "1"
            assert response.json()["error"]["message"] == "Service unavailable: the server is busy; try again"
            assert response.json()["error"]["data"] == {"reason": "overloaded", "retryAfterMs": 1000}
        assert server.app.refused == {503: len(refused)}


async def test_the_server_recovers_at_once(clock: Clock) -> None:
    """After a burst, a call is served without waiting."""
    async with serve(clock) as server:
        caller = Caller(server, clock)
        for _ in range(3):
            await caller.burst(100)
            ended = clock.now
            response, arrived = await caller.call("echo")
            assert (response.status_code, arrived) == (200, ended)


async def test_goodput_is_kept(clock: Clock) -> None:
    """While eight times as many requests arrive as can be served, the loop spends all its time on those it serves."""
    async with serve(clock) as server:
        caller, began = Caller(server, clock), clock.now
        arriving = {asyncio.ensure_future(caller.call("spin")) for _ in range(50)}
        sent = len(arriving)
        served = 0
        while arriving:
            done, arriving = await asyncio.wait(arriving, return_when=asyncio.FIRST_COMPLETED)
            served += sum(one.result()[0].status_code == 200 for one in done)
            due = int((clock.now - began) / COST_SECONDS * 8) if clock.now < began + 2 else 0
            arriving |= {asyncio.ensure_future(caller.call("spin")) for _ in range(due - sent)}
            sent = max(sent, due)
        assert served == clock.runs > 390


async def test_a_quiet_caller_loses_nothing(clock: Clock) -> None:
    """Callers are served in turn, and the one with the most waiting requests is refused first."""
    async with serve(clock, auth=AUTH) as server:
        greedy, quiet = Caller(server, clock, GREEDY), Caller(server, clock, QUIET)
        loud, calm = await asyncio.gather(greedy.burst(200), quiet.burst(8))
        assert [response.status_code for response, _ in calm] == [200] * 8
        assert [response.status_code for response, _ in loud].count(503) > 150


async def test_one_long_call_causes_no_refusal(clock: Clock) -> None:
    """Requests that arrive while the loop is blocked once wait for its end, and are served."""
    async with serve(clock) as server:
        caller = Caller(server, clock)
        stalled, replies = await asyncio.gather(caller.call("spin", seconds=1.0), caller.burst(300, "echo"))
        assert [response.status_code for response, _ in (stalled, *replies)] == [200] * 301


async def test_few_long_calls_are_not_refused(clock: Clock) -> None:
    """A few requests may wait for each other, however long each of them computes."""
    async with serve(clock) as server:
        for _ in range(2):
            replies = await Caller(server, clock).burst(16, seconds=0.5)
            assert [response.status_code for response, _ in replies] == [200] * 16


async def test_few_clients_in_a_loop_are_not_refused(clock: Clock) -> None:
    """As many clients as may wait in any case can send one long call after the other."""
    async with serve(clock) as server:
        caller = Caller(server, clock)

        async def calls() -> list[int]:
            return [(await caller.call("spin", seconds=0.05))[0].status_code for _ in range(10)]

        assert await asyncio.gather(*(calls() for _ in range(16))) == [[200] * 10] * 16


async def test_clients_that_have_left_are_not_served(clock: Clock) -> None:
    """A request whose client leaves while it waits is dropped before anything runs."""
    clients: list[socket.socket] = []

    @tool
    async def leave() -> str:
        """Let all clients leave."""
        clock.compute(0.03)
        for client in clients:
            client.close()
        return "left"

    async with serving(container_of(leave)) as server:
        data = raw_request(call("leave"), mirrored(name="leave").items())
        clients += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
        await until(lambda: len(server.server.connections) == 10)
        for client in clients:
            client.sendall(data)
        await until(lambda: not server.server.connections)
        assert 1 <= clock.runs <= 3
