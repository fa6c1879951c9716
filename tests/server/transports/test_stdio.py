"""`axolotl serve` over stdio, in real processes."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.support.commands import ForkedCommand, constants
from tests.support.peers.wire import call, message
from tests.support.servers.server_process import ServerProcess, starting

pytestmark = pytest.mark.slow

TARGET = "tests/support/containers/stdio_tools.py:Container"


def serving(**environment: str) -> AbstractAsyncContextManager[ServerProcess]:
    return starting(TARGET, **environment)


def ids(replies: Iterable[Any]) -> list[Any]:
    return sorted(reply["id"] for reply in replies)


async def test_pipelined_requests_are_all_answered() -> None:
    """Each of thousands of pipelined requests is answered."""
    async with serving() as server:
        server.say(*(call("echo", {"text": str(number)}, id=number) for number in range(5000)))
        replies = [await server.hear() for _ in range(5000)]
        assert ids(replies) == list(range(5000))
        assert all(reply["result"]["content"][0]["text"] == str(reply["id"]) for reply in replies)
        assert (await server.end())[:2] == (0, [])


async def test_requests_before_the_end_are_all_answered() -> None:
    """A client that sends two thousand requests and closes the input gets all replies, and the exit code is 0."""
    async with serving() as server:
        server.say(*(call("echo", {"text": "x"}, id=number) for number in range(2000)))
        code, replies, _ = await server.end()
        assert code == 0
        assert ids(replies) == list(range(2000))


async def test_a_client_that_reads_late_loses_nothing() -> None:
    """Unread replies block the server, and all arrive once they are read."""
    async with serving() as server:
        server.say(*(call("swell", {"size": 20_000}, id=number) for number in range(1500)))
        writing = asyncio.ensure_future(server.stdin.drain())
        assert (await server.hear())["id"] == 0
        await writing
        code, replies, _ = await server.end()
        assert code == 0
        assert ids(replies) == list(range(1, 1500))


async def test_a_running_call_is_finished_at_the_end() -> None:
    """A call running at the end of input is answered before the server exits."""
    async with serving() as server:
        server.say(call("wait_a_little", {"seconds": 0.2}, id=1, token=1))
        await server.hear()
        code, (reply,), _ = await server.end()
        assert code == 0
        assert reply["result"]["content"][0]["text"] == "rested"


async def test_a_call_that_does_not_end_is_stopped() -> None:
    """A call that exceeds the drain timeout is answered with the reason, and the server exits."""
    async with serving(**constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": 0.1})) as server:
        server.say(call("wait_for_ever", id=1, token=1))
        await server.hear()
        code, (reply,), _ = await server.end()
        assert code == 0
        assert reply["result"]["_meta"]["axolotl/reason"] == "shutdown"


async def test_a_running_call_keeps_its_files_at_the_end() -> None:
    """Files that tools open while the server closes its streams are not affected."""
    async with serving() as server:
        server.say(*(call("open_again", {"seconds": 0.3}, id=number) for number in range(8)))
        code, replies, _ = await server.end()
        assert code == 0
        assert [reply["result"]["content"][0]["text"] for reply in replies] == ["0"] * 8


async def test_a_last_line_needs_no_line_break() -> None:
    """A request without a final line break is answered."""
    async with serving() as server:
        server.stdin.write(call("echo", {"text": "x"}, id=1))
        code, replies, _ = await server.end()
        assert (code, ids(replies)) == (0, [1])


async def test_a_line_that_is_too_long_is_rejected() -> None:
    """A line beyond the limit is answered with an error, and the next line is processed."""
    async with serving(AXOLOTL_LIMITS__MAX_MESSAGE_BYTES="1000") as server:
        server.say(call("echo", {"text": "x" * 100_000}, id=1), call("echo", {"text": "y"}, id=2))
        refusal, reply = await server.hear(), await server.hear()
        assert refusal == {
            "jsonrpc": "2.0",
            "error": {"code": -32600, "message": "Invalid request: the message is too large"},
        }
        assert reply["id"] == 2
        server.say(call("echo", {"text": "z"}, id=3).ljust(1000), call("echo", {"text": "z"}, id=4).ljust(1001))
        assert "id" not in await server.hear() or "id" not in await server.hear()
        assert (await server.end())[0] == 0


async def test_blank_lines_and_other_line_ends() -> None:
    """Blank lines and carriage returns before line breaks are ignored."""
    async with serving() as server:
        server.stdin.write(b"\n  \n\r\n" + call("echo", {"text": "x"}, id=1) + b"\r\n\n")
        assert (await server.hear())["id"] == 1
        assert (await server.end())[:2] == (0, [])


async def test_output_of_tools_does_not_reach_the_client() -> None:
    """Everything that a tool writes to standard output goes to the log and not to the client."""
    ways = {"print_it": 5, "write_it": 2, "spawn_it": 3, "call_c": 3, "log_it": 2}
    async with serving() as server:
        server.say(*(call(tool, id=tool) for tool in ways))
        code, replies, log = await server.end()
    assert code == 0
    assert ids(replies) == sorted(ways)
    assert {reply["result"]["content"][0]["text"] for reply in replies} == {"silent"}, log
    assert log.count("NOISE of") - log.count("NOISE of the descriptor at import") >= sum(ways.values())
    assert "NOISE at import" in log
    assert "NOISE of the descriptor at import" in log
    assert "NOISE at exit" in log


async def test_input_of_the_client_does_not_reach_a_tool() -> None:
    """Standard input is empty for a tool and its children, and the protocol is not disturbed."""
    async with serving() as server:
        server.say(call("read_it", id=1), call("echo", {"text": "x"}, id=2))
        replies = {reply["id"]: reply for reply in [await server.hear(), await server.hear()]}
        assert replies[1]["result"]["content"][0]["text"] == "('', b'', b'')"
        assert replies[2]["result"]["content"][0]["text"] == "x"
        assert (await server.end())[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_a_signal_drains() -> None:
    """On a signal the server answers running calls and exits with 0; on a second one it exits immediately."""
    async with serving(**constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": 1000})) as server:
        server.say(call("wait_for_ever", id=1, token=1))
        await server.hear()
        server.tell(signal.SIGTERM)
        # Pending signals of the same kind are merged, so the second signal must be a different one.
        server.tell(signal.SIGINT)
        reply = await server.hear()
        assert (reply["id"], reply["result"]["_meta"]["axolotl/reason"]) == (1, "shutdown")
        assert await server.ended() == 0


async def test_tools_that_would_end_the_process_end_their_call() -> None:
    """A tool that exits or interrupts fails only its own call."""
    async with serving() as server:
        for tool in ("exit_it", "interrupt_it", "exit_in_thread"):
            server.say(call(tool, id=tool))
            reply = await server.hear()
            assert (reply["id"], reply["result"]["isError"]) == (tool, True)
        server.say(call("echo", {"text": "x"}, id=1))
        assert (await server.hear())["id"] == 1
        assert (await server.end())[:2] == (0, [])


async def test_both_eras_share_a_stream() -> None:
    """A client can send handshake and stateless requests over one stream."""
    async with serving() as server:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        server.say(message("initialize", params, id=1))
        assert (await server.hear())["result"]["protocolVersion"] == "2025-06-18"
        server.say(message("notifications/initialized", id=None), call("echo", {"text": "x"}, id=2))
        assert (await server.hear())["result"]["resultType"] == "complete"
        server.say(call("echo", {"text": "x"}, id=3, handshake=True))
        assert "resultType" not in (await server.hear())["result"]
        assert (await server.end())[0] == 0


def test_a_client_that_stops_reading_ends_the_server() -> None:
    """If replies can no longer be written, the process exits without a traceback, although stdin is still open."""
    reading, writing = os.pipe()
    server = ForkedCommand("serve", TARGET, stdout=writing)
    os.close(writing)
    os.write(server.stdin, message("ping") + b"\n")
    os.read(reading, 1)
    os.close(reading)
    assert server.wait() == 0
    server.kill()
    os.close(server.stdin)
    with os.fdopen(server.stderr) as log:
        assert "Traceback" not in log.read()
