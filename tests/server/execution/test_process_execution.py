"""Tools in tool processes: features and failures."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server import InProcessClient, ServerHost, connect
from axolotl_server.execution.process_pool import ProcessPool
from tests.support.containers import process_tools
from tests.support.forked_processes import Mailbox, gone, share_forks
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

share_forks()

ONE = {"limits": {"processes": 1}}


def crew_of(host: ServerHost) -> ProcessPool:
    """Return the process pool of the only tool that has one."""
    [crew] = host.assembly.processes._pools
    assert isinstance(crew, ProcessPool)
    return crew


def block_until(condition: Callable[[], bool]) -> None:
    """Wait without running the loop."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end


async def test_models_travel() -> None:
    """Arguments and outputs keep their types."""
    async with connect(container_of(process_tools.Mirror())) as client:
        assert (await client.call("mirror", {"x": 1, "y": 2})).structured == {"x": 2, "y": 1}


async def test_the_context_is_available_in_a_process() -> None:
    """The context is available in the process, and a process is reused."""
    async with connect(container_of(process_tools.whoami), settings=ONE, principal=Principal("ada")) as client:
        first, second = [(await client.call("whoami", meta={"tenant": "acme"})).structured for _ in range(2)]
    assert first["pid"] == second["pid"] != os.getpid()
    assert first["subject"] == "ada"
    assert first["id"] != second["id"]
    assert 0 < first["remaining"] <= 30
    assert first["meta"] == {"tenant": "acme"}


async def test_a_process_can_send_messages() -> None:
    """Progress and log messages reach the caller in order, before the reply."""
    heard: list[Any] = []
    async with connect(container_of(process_tools.speak)) as client:
        meta = {"io.modelcontextprotocol/logLevel": "info", "progressToken": 1}
        params = {"name": "speak", "arguments": {}, "_meta": meta}
        result = await client.request("tools/call", params, on_progress=heard.append, on_log=heard.append)
    assert result["content"][0]["text"] == "spoken"
    assert [one.get("message") or one["data"] for one in heard] == ["half", {"half": True}, "whole"]


async def test_messages_after_the_end_are_dropped() -> None:
    """Threads that a call leaves behind cannot send messages in the next call."""
    heard: list[Any] = []
    async with connect(container_of(process_tools.chatter), settings=ONE) as client:
        for _ in range(2):
            assert (await client.call("chatter", on_progress=heard.append)).text == "said"
        await asyncio.to_thread(lambda: None)
    assert heard == []


async def test_a_process_cannot_ask() -> None:
    """A question from a process raises an error that explains the limitation."""

    async def answer(question: Any) -> Any:
        raise AssertionError("nobody is asked")

    async with connect(container_of(process_tools.ask), answer=answer) as client:
        outcome = await client.call("ask")
    assert outcome.is_error


async def test_failures_are_those_of_any_tool(caplog: pytest.LogCaptureFixture) -> None:
    """Tool errors are sent, other errors are logged with a traceback, and the process is reused."""
    tools = (process_tools.complain, process_tools.fail, process_tools.quit_politely, process_tools.recurse)
    async with connect(container_of(*tools), settings=ONE) as client:
        told = await client.call("complain")
        hidden = [await client.call(name) for name in ("fail", "quit_politely", "recurse")]
    assert (told.text, told.meta["when"]) == ("not today", "later")
    assert all("Reference" in outcome.text for outcome in hidden)
    assert "the secret of the worker" in caplog.text
    assert "SystemExit: 3" in caplog.text
    assert "RecursionError" in caplog.text


async def test_a_missing_await_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """A tool that returns a coroutine leaves its line and what to write in the log."""
    async with connect(container_of(process_tools.forget_to_await), settings=ONE) as client:
        assert (await client.call("forget_to_await")).is_error
    assert re.search(r"returned the coroutine sleep \(\S*process_tools\.py:\d+\): await it", caplog.text)


async def test_an_output_that_is_no_json(caplog: pytest.LogCaptureFixture) -> None:
    """The log says what is wrong with the output, and where the tool is."""
    async with connect(container_of(process_tools.average), settings=ONE) as client:
        outcome = await client.call("average")
    assert outcome.is_error
    assert "process_tools.py:" in caplog.text
    assert "which is not JSON: it is nan" in caplog.text


@pytest.mark.parametrize(
    ("name", "arguments", "ending"),
    [("leave", {"code": 7}, "with code 7"), ("segfault", {}, "by signal 11")],
)
async def test_a_crash_is_a_clean_error(name: str, arguments: dict[str, Any], ending: str) -> None:
    """A crashed call gets an error, and the next one a new process."""
    tools = (process_tools.leave, process_tools.segfault, process_tools.whoami)
    async with connect(container_of(*tools), settings=ONE) as client:
        for _ in range(2):
            outcome = await client.call(name, arguments)
            assert outcome.is_error
            assert outcome.text == f"Tool {name} crashed: its process ended {ending}"
            assert outcome.meta["axolotl/reason"] == "crashed"
        assert not (await client.call("whoami")).is_error


async def test_a_crash_leaves_no_children(tmp_path: Path) -> None:
    """Child processes end with their process, even after a crash."""
    async with connect(container_of(process_tools.leave_a_child), settings=ONE) as client:
        with Mailbox(tmp_path) as mailbox:
            outcome = await client.call("leave_a_child", {"path": mailbox.path})
            [child] = mailbox.taken()
        assert outcome.text == "Tool leave_a_child crashed: its process ended with code 5"
        await gone(child)


async def test_too_much_memory_is_a_clean_error() -> None:
    """A call that exceeds the memory limit gets an error, and the next one works."""
    settings = {"limits": {"max_process_bytes": process_tools.MEMORY_BYTES, "processes": 1}}
    async with connect(container_of(process_tools.devour, process_tools.Mirror()), settings=settings) as client:
        outcome = await client.call("devour")
        assert outcome.is_error
        assert outcome.meta["axolotl/reason"] == "memory"
        assert not (await client.call("mirror", {"x": 1})).is_error


@pytest.mark.parametrize("name", ["spin", "match", "have_children"])
async def test_a_deadline_kills_the_process(name: str, tmp_path: Path) -> None:
    """On a timeout the process and its children are killed, and the next call gets a new process."""
    async with ServerHost(container_of(getattr(process_tools, name)), flags=ONE) as host:
        client = InProcessClient(host.handler)
        pids: list[int] = []
        with Mailbox(tmp_path) as mailbox:
            while len(pids) < 2:  # a process that starts slowly has no time to begin
                outcome = await client.call(name, {"path": mailbox.path})
                assert outcome.meta["axolotl/reason"] == "timeout"
                pids += mailbox.taken()
        await asyncio.gather(*map(gone, pids))
        assert host.assembly.processes.killed >= 2
        await client.close()


async def test_a_cancellation_kills_the_process(tmp_path: Path) -> None:
    """A cancellation kills the process."""
    settings = {"tools": {"spin": {"timeout_seconds": 60}}}
    async with connect(container_of(process_tools.spin), settings=settings) as client:
        with Mailbox(tmp_path) as mailbox:
            running = asyncio.ensure_future(client.call("spin", {"path": mailbox.path}))
            pid = await mailbox.take()
        running.cancel()
        await gone(pid)


async def test_progress_moves_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress from a process extends the deadline."""
    path = tmp_path / "enough"
    times = 0

    def hear(_: Any) -> None:
        nonlocal times
        times += 1
        if times > 10:
            path.touch()

    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 20)
    settings = {"limits": {"processes": 1}}
    async with connect(container_of(process_tools.report_often), settings=settings) as client:
        outcome = await client.call("report_often", {"path": str(path)}, on_progress=hear)
    assert outcome.text == "found"


async def test_more_calls_than_processes() -> None:
    """Hundreds of concurrent calls share a few processes."""
    async with ServerHost(container_of(process_tools.whoami), flags={"limits": {"processes": 2}}) as host:
        client = InProcessClient(host.handler)
        outcomes = await asyncio.gather(*(client.call("whoami") for _ in range(500)))
        assert len({outcome.structured["pid"] for outcome in outcomes}) <= 2
        assert host.assembly.processes.processes <= 2
        await client.close()


async def test_a_process_that_died_while_idle_is_not_used() -> None:
    """A call never gets a process that has already ended."""
    async with connect(container_of(process_tools.whoami), settings=ONE) as client:
        for _ in range(3):
            pid = (await client.call("whoami")).structured["pid"]
            os.kill(pid, signal.SIGKILL)
            await gone(pid)
            assert (await client.call("whoami")).structured["pid"] != pid


async def test_a_process_that_dies_before_a_call_is_replaced() -> None:
    """If a process ends before the code starts, the call gets another process."""
    async with ServerHost(container_of(process_tools.whoami), flags=ONE) as host:
        client = InProcessClient(host.handler)
        pid = (await client.call("whoami")).structured["pid"]
        [worker] = crew_of(host)._idle
        os.kill(pid, signal.SIGSTOP)  # it cannot start, and the server cannot know
        running = asyncio.ensure_future(client.call("whoami"))
        await until(lambda: worker._busy)
        os.kill(pid, signal.SIGKILL)
        assert (await running).structured["pid"] != pid
        await client.close()


async def test_a_process_is_killed_for_its_own_call_only() -> None:
    """If a call is stopped just after its code has finished, the process is kept."""
    async with ServerHost(container_of(process_tools.whoami), flags=ONE) as host:
        client = InProcessClient(host.handler)
        pid = (await client.call("whoami")).structured["pid"]
        crew = crew_of(host)
        os.kill(pid, signal.SIGSTOP)
        running = asyncio.ensure_future(client.call("whoami"))
        await until(lambda: not crew._idle)
        os.kill(pid, signal.SIGCONT)
        block_until(lambda: bool(crew._idle))  # the loop has not received the output yet
        host.handler.inflight.stop_all(CancelReason.TIMEOUT)
        assert (await running).meta["axolotl/reason"] == "timeout"
        assert host.assembly.processes.killed == 0
        assert (await client.call("whoami")).structured["pid"] == pid
        await client.close()


async def test_crashes_do_not_pile_up_processes() -> None:
    """Repeated crashes never exceed the maximum number of processes."""
    async with ServerHost(container_of(process_tools.leave), flags=ONE) as host:
        client = InProcessClient(host.handler)
        outcomes = await asyncio.gather(*(client.call("leave", {"code": 1}) for _ in range(10)))
        assert all(outcome.meta["axolotl/reason"] == "crashed" for outcome in outcomes)
        crew = crew_of(host)
        await asyncio.wrap_future(crew.threads.submit(lambda: None))  # after everything that was started meanwhile
        assert len(crew) <= 1
        await client.close()


async def test_an_output_that_cannot_travel_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """An output that cannot be encoded is logged, the caller gets a reference, and the process is reused."""
    async with connect(container_of(process_tools.unsendable), settings=ONE) as client:
        for _ in range(2):
            assert "Reference" in (await client.call("unsendable")).text
    assert "Unable to serialize" in caplog.text


@pytest.mark.parametrize("fail", [False, True])
async def test_per_call_resources_are_finalized_in_the_process(fail: bool, tmp_path: Path) -> None:
    """Per-call resources in a process are finalized there, with the outcome of the call."""
    path = tmp_path / "notes"
    async with connect(
        container_of(process_tools.Scoped(str(path))), settings=ONE, principal=Principal("ada")
    ) as client:
        outcome = await client.call("scoped", {"x": int(fail)})
        await until(lambda: path.exists() and path.read_text().count("\n") == 2)
    assert outcome.text == ("no" if fail else "ada")
    assert path.read_text().split() == ["ToolError" if fail else "well"] * 2


async def test_a_tool_that_cannot_be_loaded_is_a_clean_error(caplog: pytest.LogCaptureFixture) -> None:
    """A tool that cannot be loaded in a process is reported in the log and to the caller."""
    async with connect(container_of(process_tools.Unloadable()), settings=ONE) as client:
        outcome = await client.call("unloadable", {"x": 1})
    assert outcome.text == "Tool unloadable cannot run: it cannot be loaded in a process"
    assert "far from home" in caplog.text


async def test_a_tool_that_crashes_on_loading_is_a_clean_error() -> None:
    """A tool that crashes processes on loading fails on each call, and does not cause endless restarts."""
    async with ServerHost(container_of(process_tools.Deadly()), flags=ONE) as host:
        client = InProcessClient(host.handler)
        for _ in range(2):
            outcome = await client.call("deadly", {"x": 1})
            assert outcome.text == "Tool deadly cannot run: its process does not start"
        assert host.assembly.processes.processes == 0
        await client.close()


async def test_calls_share_no_context_variables() -> None:
    """Context variables are not shared between calls of a process."""
    async with connect(container_of(process_tools.remember, process_tools.remember_later), settings=ONE) as client:
        for name in ("remember", "remember_later") * 2:
            assert (await client.call(name, {"user": "ada"})).text == "nobody"
