"""Graceful shutdown over stdio, by the end of input or by a signal."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from axolotl_server.transports import pipes
from tests.support.commands import constants
from tests.support.containers.shutdown_tools import LONG
from tests.support.peers.wire import INITIALIZE, META, call, message
from tests.support.servers.server_process import TARGET, ServerProcess, starting
from tests.support.servers.serving import PATIENCE_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes")]

CALLS = 250
SLACK = 3.0
"""How much longer everything may take on a machine with other work."""
HELLO = {**INITIALIZE, "capabilities": {"elicitation": {}}}
PATIENT = constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": LONG})


@asynccontextmanager
async def over_stdio(**environment: str) -> AsyncIterator[ServerProcess]:
    """Serve over stdio, after a handshake."""
    async with starting(TARGET, **environment) as server:
        server.say(message("initialize", HELLO, id="hello"), message("notifications/initialized", id=None))
        assert (await server.hear())["id"] == "hello"
        yield server


def asked(name: str, arguments: Any = None, id: int | str = 1) -> bytes:
    """Write a call of a handshake revision."""
    return call(name, arguments, id=id, handshake=True)


def answer(question: Any, name: str) -> bytes:
    """Write the answer to a question."""
    result = {"action": "accept", "content": {"name": name}}
    return json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode()


def results(said: list[Any]) -> dict[Any, Any]:
    """Return the results by request ID."""
    return {one["id"]: one["result"] for one in said if "result" in one}


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe from which a tool reads until the test writes."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def socket_pair() -> tuple[int, int]:
    """Make a pair of connected sockets, which some clients use instead of pipes."""
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


async def write(path: Path, text: str = "now") -> None:
    """Release the tool that reads from a pipe."""
    await asyncio.to_thread(path.write_text, text)


async def test_running_calls_are_answered_at_the_end_of_the_input() -> None:
    """Hundreds of calls running at the end of input are answered without log output, and the exit code is 0."""
    async with over_stdio() as server:
        arguments = {"total": CALLS, "seconds": 0.3}
        server.say(*(asked("work_together", {**arguments, "number": one}, id=one) for one in range(CALLS)))
        await server.until("all calls run")
        server.stdin.close()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert {one: result["structuredContent"] for one, result in answers.items()} == {
        one: {"result": one} for one in range(CALLS)
    }
    assert "stopping, requested by" not in server.log


async def test_stuck_calls_are_stopped_and_answered() -> None:
    """A stuck call is answered with the reason and named in the log."""
    stuck = ["hang", "swallow", "block"]
    async with over_stdio(**constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": 0.2})) as server:
        server.say(*(asked(name, id=name) for name in stuck))
        for name in stuck:
            await server.until(f"{name} runs")
        server.stdin.close()
        began = time.monotonic()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert {name: result["_meta"]["axolotl/reason"] for name, result in answers.items()} == dict.fromkeys(
        stuck, "shutdown"
    )
    assert server.ended_at - began < 0.2 + 2 + SLACK
    for name in stuck:
        assert f"tool {name}, request {name!r}, is stopped: shutdown" in server.log


async def test_a_question_ends_when_the_input_ends() -> None:
    """A call waiting for an answer is stopped at the end of input, even while other calls run."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("ask_name", id=7))
        question = await server.hear()
        assert question["method"] == "elicitation/create"
        server.stdin.close()
        began = time.monotonic()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert answers[7]["_meta"]["axolotl/reason"] == "shutdown"
    assert server.ended_at - began < SLACK


async def test_a_question_that_comes_too_late_is_not_asked(pipe: Path) -> None:
    """A call that asks a question after the end of input is stopped, and the question is not sent."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("ask_late", {"path": str(pipe)}, id=7), asked("ask_name", id=8))
        await server.until("ask_late runs")
        assert (await server.hear())["method"] == "elicitation/create"
        server.stdin.close()
        while (await server.hear()).get("id") != 8:  # the end of input was noticed
            pass
        await write(pipe)
        began = time.monotonic()
        said = await server.hear_rest()
        assert await server.ended() == 0
    assert results(said)[7]["_meta"]["axolotl/reason"] == "shutdown"
    assert "elicitation/create" not in json.dumps(said)
    assert server.ended_at - began < SLACK


async def test_a_question_of_a_task_ends_when_the_input_ends() -> None:
    """A task waiting for an answer is stopped at the end of input, and the request for its result is answered."""
    async with over_stdio(**PATIENT) as server:
        server.say(message("tools/call", {"name": "ask_as_task", "arguments": {}, "task": {}}))
        task = (await server.hear())["result"]["task"]["taskId"]
        server.say(message("tasks/result", {"taskId": task}, id=2))
        while (await server.hear()).get("method") != "elicitation/create":
            pass
        server.stdin.close()
        began = time.monotonic()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert answers[2]["_meta"]["axolotl/reason"] == "shutdown"
    assert server.ended_at - began < SLACK


async def test_a_last_answer_is_received() -> None:
    """An answer sent immediately before the end of input still counts."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("ask_name", id=7))
        question = await server.hear()
        server.say(answer(question, "Ada"))
        server.stdin.close()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert answers[7]["content"][0]["text"] == "Ada"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_client_can_answer_after_a_signal(number: signal.Signals) -> None:
    """After a signal, a client can answer open questions, but its new calls are rejected."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("ask_name", id=7))
        question = await server.hear()
        server.tell(number)
        await server.until(f"stopping, requested by {number.name}; running calls: 1, which get at most 60 seconds")
        server.say(asked("echo", {"text": "late"}, id=8))
        refused = (await server.hear())["result"]
        assert (refused["isError"], refused["_meta"]["axolotl/retryAfterMs"]) == (True, 1000)
        server.say(answer(question, "Ada"))
        assert (await server.hear())["result"]["content"][0]["text"] == "Ada"
        assert await server.hear() is None
        assert await server.ended() == 0


async def test_a_client_that_leaves_after_a_signal_is_not_waited_for() -> None:
    """After a signal, open questions are cancelled when the client closes the input."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("ask_name", id=7))
        await server.hear()
        server.tell()
        await server.until("stopping, requested by")
        server.stdin.close()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert answers[7]["_meta"]["axolotl/reason"] == "shutdown"


async def test_a_signal_after_the_end_of_input_stops_calls() -> None:
    """A signal after the end of input stops running calls immediately."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("hang", id=7), asked("swallow", id=8), asked("ask_name", id=9))
        await server.until("swallow runs")
        await server.hear()
        server.stdin.close()
        while (await server.hear()).get("id") != 9:
            pass  # the question is cancelled: the server has seen the end of input
        server.tell()
        began = time.monotonic()
        answers = results(await server.hear_rest())
        assert await server.ended() == 0
    assert {answers[one]["_meta"]["axolotl/reason"] for one in (7, 8)} == {"shutdown"}
    assert server.ended_at - began < 2 + SLACK


async def test_resources_are_closed_after_the_last_answer(pipe: Path) -> None:
    """The resources of the container stay open while a call runs, and are closed before the process ends."""
    async with over_stdio(**PATIENT) as server:
        server.say(asked("read_late", {"path": str(pipe)}))
        await server.until("read_late runs")
        server.stdin.close()
        assert "closed" not in server.log
        await write(pipe, "late")
        assert results(await server.hear_rest())[1]["content"][0]["text"] == "late"
        assert await server.ended() == 0
    assert server.log.index("cache closed") < server.log.index("database closed")


async def test_subscriptions_are_ended() -> None:
    """An open subscription gets its result and final notification, and does not delay the shutdown."""
    listen = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": META}, id="l")
    async with starting(TARGET, **PATIENT) as server:
        server.say(listen)
        assert (await server.hear())["method"] == "notifications/subscriptions/acknowledged"
        server.tell()
        result, cancelled = await server.hear_rest()
        assert await server.ended() == 0
    assert (result["id"], result["result"]["resultType"]) == ("l", "complete")
    assert (cancelled["method"], cancelled["params"]) == ("notifications/cancelled", {"requestId": "l"})


async def test_a_client_that_does_not_read_delays_the_end_only_briefly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Output that is not read delays the shutdown only for a limited time."""
    monkeypatch.setattr(pipes, "_TIMEOUT_SECONDS", 0.05)
    theirs, ours = os.pipe()
    try:
        writer = await pipes.open_writer(ours, lambda full: None, lambda: None)
        writer.write(b"x" * 2**20)
        await writer.close()
    finally:
        os.close(theirs)
    assert "bytes are lost: the client does not read the standard output" in caplog.text


@pytest.mark.parametrize("make", [os.pipe, socket_pair])
async def test_the_end_of_the_input_is_noticed_although_the_client_does_not_read(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], tuple[int, int]]
) -> None:
    """A server whose output is full reads no further input, but notices that the client has closed it."""
    monkeypatch.setattr(pipes, "_TIMEOUT_SECONDS", 0.01)
    ours, theirs = make()
    chunks: list[bytes] = []
    ended = asyncio.Event()
    valve = await pipes.open_reader(ours, chunks.append, ended.set)
    valve.hold(True)
    os.write(theirs, b"ping")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ended.wait(), 0.1)
    assert not chunks
    os.close(theirs)
    await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)
    assert chunks == [b"ping"]
    valve.close()


async def test_a_client_that_reads_slowly_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a slow client keeps reading, no output is dropped."""
    monkeypatch.setattr(pipes, "_TIMEOUT_SECONDS", 0.05)
    theirs, ours = os.pipe()
    writer = await pipes.open_writer(ours, lambda full: None, lambda: None)
    writer.write(b"x" * 2**20)
    closing = asyncio.ensure_future(writer.close())
    read = 0
    while chunk := await asyncio.to_thread(os.read, theirs, 2**16):
        read += len(chunk)
        await asyncio.wait((closing,), timeout=0.02)
    await closing
    os.close(theirs)
    assert read == 2**20
