"""Faults of user code that reach beyond its own call cost one call at most, and that call gets a reply."""

import asyncio
import logging
import signal
from collections.abc import Iterator

import pytest

from tests.faults.background_tools import Container, let_go
from tests.faults.wires import WAYS, wire_to
from tests.support.commands import constants
from tests.support.peers.wire import call
from tests.support.servers.server_process import ServerProcess, answer_to, starting

pytestmark = pytest.mark.slow

TARGET = "tests.faults.background_tools:Container"


@pytest.fixture(autouse=True)
def repaired_log() -> Iterator[None]:
    """Remove the log handlers that a test in this process has added."""
    log = logging.getLogger()
    before = list(log.handlers)
    yield
    log.handlers[:] = before
    let_go()


@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_that_cancels_its_own_task_gets_one_reply(way: str) -> None:
    """Whether the code then waits or returns, and whether the reply is JSON or a stream, there is exactly one reply."""
    async with wire_to(way, Container) as wire:
        waiting, returning, *rest = await asyncio.gather(
            *(wire.call(name) for name in ("cancel_and_wait", "cancel_and_return")),
            *(wire.call(name) for name in ("report_cancel_and_wait", "report_cancel_and_return")),
            wire.call("echo", {"text": "unharmed"}),
        )
        for failed in (waiting, rest[0]):
            assert failed["isError"]
            assert "Reference" in failed["content"][0]["text"]
        assert [result["content"][0]["text"] for result in (returning, *rest[1:])] == ["done", "done", "unharmed"]
    assert set(wire.answers.values()) == {1}


@pytest.mark.parametrize("way", WAYS)
async def test_a_log_handler_that_raises(way: str) -> None:
    """A failing call, an abandoned coroutine and an abandoned thread are answered as with a working log."""
    async with wire_to(way, Container) as wire:
        await wire.call("break_log")
        failed, *stopped = await asyncio.gather(*map(wire.call, ("fail", "block", "ignore_cancellation")))
        assert "Reference" in failed["content"][0]["text"]
        assert [result["_meta"]["axolotl/reason"] for result in stopped] == ["timeout", "timeout"]
        assert (await wire.call("echo", {"text": "still here"}))["content"][0]["text"] == "still here"
        await wire.call("repair_log")
        await wire.call("release")
    assert set(wire.answers.values()) == {1}


async def test_a_shutdown_with_a_log_handler_that_raises() -> None:
    """Calls that are stopped by a shutdown are answered although they cannot be logged."""
    async with starting(TARGET, **constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": 0})) as server:
        server.say(*(call(name, id=number) for number, name in enumerate(("break_log", "wait"))))
        assert (await server.hear())["id"] == 0
        server.tell(signal.SIGTERM)
        stopped = await server.hear()
        assert stopped["result"]["_meta"]["axolotl/reason"] == "shutdown"
        assert await server.ended() == 0


@pytest.mark.parametrize("fault", ["exit", "interrupt", "stop_loop"])
@pytest.mark.parametrize("place", ["fail_in_task", "fail_in_callback"])
async def test_faults_in_the_background_over_stdio(place: str, fault: str) -> None:
    """SystemExit, KeyboardInterrupt and a stopped loop neither end the server nor any call."""
    async with starting(TARGET) as server:
        await _survive(server, place, fault)
        server.tell(signal.SIGTERM)
        assert await server.ended() == 0
    assert "tried to end the server" in server.log


@pytest.mark.parametrize("workers", [1, 2])
async def test_faults_in_the_background_over_http(workers: int) -> None:
    """The same over HTTP, also with workers."""
    async with starting(TARGET, "--transport", "http", "--port", "0", "--workers", str(workers)) as server:
        await server.until_serving()
        for place in ("fail_in_task", "fail_in_callback"):
            reply = await answer_to(server.port, place, {"fault": "exit"})
            assert reply["content"][0]["text"] == "survived"
        server.tell(signal.SIGTERM)
        assert await server.ended() == 0
    assert server.log.count("tried to end the server") == 2


async def _survive(server: ServerProcess, place: str, fault: str) -> None:
    server.say(*(call("wait", id=number) for number in range(10)), call(place, {"fault": fault}, id=10))
    survived = await server.hear()
    assert (survived["id"], survived["result"]["content"][0]["text"]) == (10, "survived")
    server.say(call("release", id=11))
    replies = [await server.hear() for _ in range(11)]
    assert sorted(reply["id"] for reply in replies) == [*range(10), 11]
