"""Real workers of `axolotl serve --workers`: killed, replaced and reloaded under load."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from axolotl_server.audit.log_reading import verify
from benchmarks.soak.fleet import Fleet, fleet
from tests.chaos.container import LEDGER
from tests.chaos.load import Load
from tests.support.peers.memory_peer import ABLE, text_of
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.stores.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="processes share no sockets")]

TARGET = "tests.support.containers.worker_tools:Container"
CHAOS = "tests.chaos.container:Container"


@pytest.fixture(scope="module")
def workers(redis: RedisServer) -> Iterator[Fleet]:
    """Start two workers that share sessions."""
    shared = {"AXOLOTL_REDIS__URL": redis.url}
    with fleet(TARGET, 2, shared) as running:
        yield running


@pytest.fixture(scope="module")
def workers_without_redis() -> Iterator[Fleet]:
    """Start workers that share sessions in the directory of their supervisor."""
    with fleet(TARGET, 2) as started:
        yield started


@pytest.fixture(params=["workers", "workers_without_redis"], ids=["redis", "files"])
def sharing_workers(request: pytest.FixtureRequest) -> Fleet:
    """Take workers that share sessions in one way or the other."""
    workers: Fleet = request.getfixturevalue(request.param)
    return workers


class Line(Client):
    """A client whose requests all go to one worker, over one connection."""

    worker: int


@contextlib.asynccontextmanager
async def lines(workers: Fleet) -> AsyncIterator[tuple[Line, Line]]:
    """Connect to both workers; which one accepts a connection is random."""
    found: dict[int, Line] = {}
    clients: list[httpx2.AsyncClient] = []
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(found) < 2:
                limits = httpx2.Limits(max_connections=1)
                http = httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS, limits=limits)
                clients.append(http)
                line = Line(http, workers.url)
                reply = await http.post(line.url, content=call("whoami"), headers=mirrored(name="whoami"))
                line.worker = int(text_of(reply.json()))
                found.setdefault(line.worker, line)
        one, other = found.values()
        yield one, other
    finally:
        for http in clients:
            await http.aclose()


async def progress(stream: EventReader) -> str | None:
    """Read up to the first progress event and return its id."""
    event = await stream.take()
    event = await stream.take() if event.is_priming else event
    assert event.message["method"] == "notifications/progress"
    return event.id


async def test_connections_are_shared_out(workers: Fleet) -> None:
    """Many new connections are distributed over the workers."""
    met: Counter[str] = Counter()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(12):
            http = await stack.enter_async_context(httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS))
            reply = await http.post(workers.url, content=call("whoami"), headers=mirrored(name="whoami"))
            met[text_of(reply.json())] += 1
    assert len(met) == 2
    assert min(met.values()) >= 3  # it would be six if no worker were ever slow to accept


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_official_clients_are_served_by_all(sharing_workers: Fleet, mode: Any) -> None:
    """An official client with a new connection per request uses both workers, with questions and answers."""

    async def elicit(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann"})

    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS, limits=limits) as http:
        transport = streamable_http_client(sharing_workers.url, http_client=http)
        options = {"mode": mode, "read_timeout_seconds": PATIENCE_SECONDS, "elicitation_callback": elicit}
        async with OfficialClient(transport, **options) as client:
            met: set[str] = set()
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len(met) < 2:
                    met.add((await client.call_tool("whoami")).content[0].text)  # type: ignore[union-attr]
            assert met == {str(pid) for pid in sharing_workers.workers()}
            for _ in range(6):
                greeted = (await client.call_tool("greet")).content[0]
                assert greeted.text == "Hello, Ann!"  # type: ignore[union-attr]
            assert len((await client.list_tools()).tools) == 5


async def test_one_session_at_two_workers(sharing_workers: Fleet, tmp_path: Path) -> None:
    """Answers, resumption, cancellation and notifications work at another worker."""
    pipe, trace = tmp_path / "pipe", tmp_path / "trace"
    os.mkfifo(pipe)
    async with lines(sharing_workers) as (one, other):
        await one.begin(**ABLE)
        other.headers = one.headers
        async with one.calling(call("greet", handshake=True)) as stream:
            event = await stream.take()
            question = (await stream.take() if event.is_priming else event).message
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Bo"}}}
            assert (await other.post(json.dumps(answer).encode())).status_code == 202
            assert text_of((await stream.take()).message) == "Hello, Bo!"
        async with one.calling(call("work", {"pipe": str(pipe)}, id=2, token=1, handshake=True)) as stream:
            last = await progress(stream)
        async with other.hearing(last) as stream:
            await asyncio.to_thread(pipe.write_text, "written", encoding="utf-8")
            await progress(stream)
            assert text_of((await stream.take()).message) == "written"
            assert await stream.rest() == []
        async with one.calling(call("hang", {"trace": str(trace)}, id=3, token=1, handshake=True)) as stream:
            await progress(stream)
            body = message("notifications/cancelled", {"requestId": 3}, id=None)
            assert (await other.post(body)).status_code == 202
            assert await stream.rest()
        assert trace.read_text(encoding="utf-8") == "stopped"
        await one.ask("resources/subscribe", {"uri": "note://one"})
        async with other.hearing() as news:
            assert (await news.take()).is_priming
            await one.post(call("touch", id=4, handshake=True))
            assert (await news.take()).message["params"] == {"uri": "note://one"}


async def test_changes_reach_listeners_at_all_workers(workers: Fleet) -> None:
    """A subscriber at one worker is notified of a change by a call at another."""
    wanted = {"notifications": {"resourceSubscriptions": ["note://one"]}, "_meta": META}
    body, headers = message("subscriptions/listen", wanted), mirrored("subscriptions/listen")
    async with (
        lines(workers) as (one, other),
        other.http.stream("POST", other.url, content=body, headers=headers) as response,
    ):
        stream = EventReader(response)
        assert (await stream.take()).message["method"] == "notifications/subscriptions/acknowledged"
        await one.http.post(one.url, content=call("touch"), headers=mirrored(name="touch"))
        assert (await stream.take()).message["params"]["uri"] == "note://one"


async def test_a_state_is_opened_by_all(workers: Fleet) -> None:
    """A state that one worker sealed can be opened by another, without a configured key."""
    capable = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    params = {"name": "greet", "arguments": {}, "_meta": capable}
    async with lines(workers) as (one, other):
        asked = (
            await one.http.post(one.url, content=message("tools/call", params), headers=mirrored(name="greet"))
        ).json()
        [key] = asked["result"]["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Cy"}}}
        again = {**params, "inputResponses": answers, "requestState": asked["result"].get("requestState", "")}
        again = {name: value for name, value in again.items() if value}
        reply = await other.http.post(other.url, content=message("tools/call", again), headers=mirrored(name="greet"))
        assert text_of(reply.json()) == "Hello, Cy!"


async def test_killed_workers(redis: RedisServer, tmp_path: Path) -> None:
    """While workers are killed, each call is answered or its connection fails, and none runs twice.

    Under load, a reload then loses nothing, and a signal ends all processes in order.
    """
    ledger = tmp_path / "ledger"
    ledger.touch()
    environment = {
        LEDGER: str(ledger),
        "AXOLOTL_REDIS__URL": redis.url,
        "AXOLOTL_REDIS__PREFIX": "killed:",
    }
    with fleet(CHAOS, 2, environment) as workers:
        killed = []
        async with Load(workers.url, sessions=True) as load:
            for _ in range(2):
                await load.more(250)
                killed.append(workers.serving()[0])
                os.kill(killed[-1], signal.SIGKILL)
            await load.more(300)
        assert (load.outcome.faults(ledger), load.outcome.refused) == ([], {})
        assert len(load.outcome.answered) > load.outcome.made * 0.8
        await asyncio.to_thread(workers.wait_until_full, without=killed)

        ledger.write_text("", encoding="utf-8")
        before, line = set(workers.serving()), len(workers.log)
        async with Load(workers.url, sessions=True) as load:
            workers.signal(signal.SIGHUP)
            await load.more(250)
            await asyncio.to_thread(workers.wait_for, "reloaded:", line)
        assert (load.outcome.faults(ledger), len(load.outcome.answered)) == ([], load.outcome.made)
        await asyncio.to_thread(workers.wait_until_full, without=before)

        workers.signal(signal.SIGTERM)
        assert await asyncio.to_thread(workers.end) == 0


def gone(pids: list[int]) -> bool:
    """Return whether processes have ended."""
    return not any(Path(f"/proc/{pid}/cmdline").exists() and _command(pid) for pid in pids)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")
async def test_workers_do_not_outlive_their_supervisor(tmp_path: Path) -> None:
    """If the supervisor is killed, its workers finish their calls and end; each has its own audit log.

    The next start removes the folder in which they shared sessions.
    """
    with TemporaryDirectory() as folders:  # sockets in it need a short path
        variables = {"AXOLOTL_AUDIT__JSONL_PATH": str(tmp_path / "audit-{worker}.jsonl"), "TMPDIR": folders}
        with fleet(TARGET, 2, variables) as workers:
            pids = workers.workers()
            workers.signal(signal.SIGKILL)
            await until(lambda: gone(pids))
        assert {"audit-1.jsonl", "audit-2.jsonl"} < set(os.listdir(tmp_path))
        [left] = os.listdir(folders)
        with fleet(TARGET, 2, variables):
            [own] = os.listdir(folders)
        assert own != left


async def test_numbers_are_used_again(tmp_path: Path) -> None:
    """With two workers, crashes and reloads use the numbers 1 to 4 only, even while replaced workers finish calls.

    A reload waits if as many replaced workers as there are workers still run. All logs are complete.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    audit = {"AXOLOTL_AUDIT__JSONL_PATH": str(tmp_path / "audit-{worker}.jsonl")}
    with fleet(TARGET, 2, audit) as workers:
        async with lines(workers) as connected, contextlib.AsyncExitStack() as stack:
            body, headers = call("work", {"pipe": str(pipe)}, token=1), mirrored(name="work")
            streams = []
            for client in connected:
                response = client.http.stream("POST", client.url, content=body, headers=headers)
                streams.append(EventReader(await stack.enter_async_context(response)))
                await progress(streams[-1])
            old = set(workers.serving())
            workers.signal(signal.SIGHUP)
            line = await asyncio.to_thread(workers.wait_for, "reloaded:")
            [killed, _] = set(workers.serving()) - old
            os.kill(killed, signal.SIGKILL)
            line = await asyncio.to_thread(workers.wait_for, "serves", line)
            workers.signal(signal.SIGHUP)
            line = await asyncio.to_thread(workers.wait_for, "reloading:", line)
            assert not any("reloaded:" in text for text in workers.log[line:])
            await asyncio.to_thread(pipe.write_text, "done", encoding="utf-8")
            ended = [(await stream.rest())[-1].message for stream in streams]
            assert {text_of(one) for one in ended} == {"done", ""}
            await asyncio.to_thread(workers.wait_for, "reloaded:", line)
        workers.signal(signal.SIGTERM)
        assert await asyncio.to_thread(workers.end) == 0
    logs = sorted(name for name in os.listdir(tmp_path) if name.endswith(".jsonl"))
    assert logs == [f"audit-{number}.jsonl" for number in (1, 2, 3, 4)]
    assert [verify(tmp_path / name).fault for name in logs] == [None] * 4
