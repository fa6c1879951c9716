"""Tool processes that several tools share."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ITool, ToolRegistry
from axolotl_server import InProcessClient, ServerHost
from axolotl_server.execution.process_pool import ProcessPool
from axolotl_server.execution.processes import ProcessRunner
from tests.support.containers import process_group_tools as tools
from tests.support.containers import process_tools
from tests.support.containers.process_group_tools import Deadly, Numbered
from tests.support.forked_processes import Mailbox, gone, share_forks
from tests.support.servers.serving import until
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

share_forks()


class Served:
    """A server whose tools are added and removed."""

    def __init__(self, host: ServerHost, client: InProcessClient, registry: ToolRegistry) -> None:
        self.client = client
        self.registry = registry
        self.runner: ProcessRunner = host.assembly.processes

    def crews(self) -> dict[str, ProcessPool]:
        """Return the process pools by name."""
        return {crew._name.removeprefix("axolotl-"): crew for crew in self.runner._pools if not crew.closed}

    async def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool that succeeds."""
        outcome = await self.client.call(name, arguments)
        assert not outcome.is_error, outcome.text
        return outcome.structured


@asynccontextmanager
async def served(
    *items: ITool[Any, Any], processes: int = 1, members: Sequence[str] = (), **limits: Any
) -> AsyncIterator[Served]:
    """Serve tools, and put those without a group into one."""
    settings = {
        "limits": {"processes": processes, **limits},
        "tools": {name: {"timeout_seconds": 60} for name in members},
    }
    container, registry = container_of(), ToolRegistry(items)
    container.tool_registry = providers.Object(registry)
    with pytest.MonkeyPatch.context() as patch:
        for item in items:
            if item.name in members:
                patch.setattr(item, "pool", "one")
        async with ServerHost(container, flags=settings) as host:
            client = InProcessClient(host.handler)
            try:
                yield Served(host, client, registry)
            finally:
                await client.close()


class Gate:
    """A pipe that releases calls of `hold`."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "gate")
        os.mkfifo(self.path)
        self._descriptor = os.open(self.path, os.O_RDWR)

    def open(self) -> None:
        """Release one call."""
        os.write(self._descriptor, b"x")

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def gate(tmp_path: Path) -> Any:
    """A closed gate."""
    one = Gate(tmp_path)
    yield one
    one.close()


async def test_tools_of_a_group_share_a_process() -> None:
    """Synchronous and asynchronous tools of a group share the only process."""
    async with served(tools.pid, tools.pid_later) as server:
        pids = [await server.call(name) for name in ("pid", "pid_later", "pid", "pid_later")]
        assert len(set(pids)) == 1
        assert server.runner.processes == 1


async def test_a_group_has_no_more_processes_than_a_tool() -> None:
    """Concurrent calls of all tools of a group use at most the allowed number of processes."""
    async with served(tools.pid, tools.pid_later, processes=2) as server:
        pids = await asyncio.gather(*(server.call(name) for name in ("pid", "pid_later") * 100))
        assert len(set(pids)) <= 2
        assert server.runner.processes <= 2


async def test_groups_share_nothing() -> None:
    """Different groups, and tools without one, have different processes."""
    async with served(tools.pid, tools.pid_elsewhere, tools.pid_alone) as server:
        pids = [await server.call(name) for name in ("pid", "pid_elsewhere", "pid_alone")]
        assert len(set(pids)) == 3
        assert sorted(server.crews()) == ["one", "other", "pid_alone"]


async def test_a_process_is_warm_for_all_tools() -> None:
    """A warm process starts without a call and knows every tool of its group."""
    async with served(tools.pid, tools.pid_later, processes=2) as server:
        crew = server.crews()["one"]
        await until(lambda: [len(one._loaded) for one in crew._idle] == [2])
        assert server.runner.processes == 1


async def test_a_tool_travels_once() -> None:
    """A process that knows a tool is preferred, and does not load it again."""
    async with served(tools.pid, tools.pid_later, processes=2) as server:
        crew = server.crews()["one"]
        await until(lambda: [len(one._loaded) for one in crew._idle] == [2])
        [taught] = crew._idle
        stranger = crew._start()
        crew._keep(stranger)
        await server.call("pid")
        assert crew._idle[-1] is taught
        assert not stranger._loaded


async def test_a_crash_does_not_affect_other_tools(tmp_path: Path, gate: Gate) -> None:
    """Crashes of one tool do not affect a running call of another."""
    async with served(tools.pid, tools.hold, tools.leave, processes=2) as server:
        with Mailbox(tmp_path) as mailbox:
            holding = asyncio.ensure_future(server.call("hold", path=mailbox.path, gate=gate.path))
            pid = await mailbox.take()
        for _ in range(2):
            outcome = await server.client.call("leave")
            assert outcome.text == "Tool leave crashed: its process ended with code 7"
            assert await server.call("pid") != pid
        gate.open()
        assert await holding == pid
        assert server.runner.processes <= 2


async def test_only_the_process_of_a_stopped_call_is_killed(tmp_path: Path, gate: Gate) -> None:
    """Canceling a call kills only its own process."""
    async with served(tools.hold, process_tools.spin, processes=2, members=["spin"]) as server:
        with Mailbox(tmp_path) as mailbox:
            spinning = asyncio.ensure_future(server.client.call("spin", {"path": mailbox.path}))
            victim = await mailbox.take()
            holding = asyncio.ensure_future(server.call("hold", path=mailbox.path, gate=gate.path))
            other = await mailbox.take()
        spinning.cancel()
        await gone(victim)
        gate.open()
        assert await holding == other != victim
        assert server.runner.killed == 1


async def test_a_deadline_ends_one_process_of_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout kills one process, and the next call of another tool gets a new one."""
    monkeypatch.setattr(process_tools.spin, "pool", "one")
    flags = {"limits": {"processes": 1}}
    async with ServerHost(container_of(tools.pid, process_tools.spin), flags=flags) as host:
        client = InProcessClient(host.handler)
        with Mailbox(tmp_path) as mailbox:
            outcome = await client.call("spin", {"path": mailbox.path})
            assert outcome.meta["reason"] == "timeout"
            victims = mailbox.taken()
        assert (await client.call("pid")).structured not in victims
        await client.close()


async def test_a_tool_may_have_fewer_than_its_group(tmp_path: Path, gate: Gate) -> None:
    """`max_concurrency` of a tool leaves the other processes to the other tools."""
    settings = {"limits": {"processes": 2}, "tools": {"hold": {"max_concurrency": 1}}}
    async with ServerHost(container_of(tools.hold, tools.pid), flags=settings) as host:
        client = InProcessClient(host.handler)
        with Mailbox(tmp_path) as mailbox:
            arguments = {"path": mailbox.path, "gate": gate.path}
            holding = asyncio.ensure_future(client.call("hold", arguments))
            pid = await mailbox.take()
            assert "retryAfterMs" in (await client.call("hold", arguments)).meta
            assert (await client.call("pid")).structured != pid
        gate.open()
        assert (await holding).structured == pid
        await client.close()


async def test_too_much_memory_does_not_affect_other_tools() -> None:
    """If a tool exceeds the memory limit, the process is still used for other tools."""
    limit = process_tools.MEMORY_BYTES
    async with served(tools.pid, process_tools.devour, members=["devour"], max_process_bytes=limit) as server:
        pid = await server.call("pid")
        assert (await server.client.call("devour")).meta["reason"] == "memory"
        assert await server.call("pid") == pid


async def test_a_tool_that_cannot_be_loaded_does_not_affect_others() -> None:
    """A tool that cannot be loaded fails on each call, and the process is used for other tools."""
    unloadable = process_tools.Unloadable()
    async with served(tools.pid, unloadable, members=["unloadable"]) as server:
        pid = await server.call("pid")
        for _ in range(2):
            outcome = await server.client.call("unloadable", {"x": 1})
            assert outcome.text == "Tool unloadable cannot run: it cannot be loaded in a process"
        assert await server.call("pid") == pid


async def test_a_tool_that_crashes_on_loading_does_not_affect_others() -> None:
    """A tool that crashes processes on loading fails on each call, and does not cause endless restarts."""
    async with served(tools.pid, Deadly(), processes=2) as server:
        for _ in range(2):
            await server.call("pid")
            outcome = await server.client.call("deadly")
            assert outcome.text == "Tool deadly cannot run: its process does not start"
        assert await server.call("pid")
        assert server.runner.processes <= 2


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_tool_that_comes_later_joins(in_thread: bool) -> None:
    """A tool that is added later is loaded by the existing process, from any thread."""
    async with served(tools.pid) as server:
        pid = await server.call("pid")
        if in_thread:
            await asyncio.to_thread(server.registry.register, tools.pid_later)
        else:
            server.registry.register(tools.pid_later)
        assert await server.call("pid_later") == pid


async def test_processes_end_with_the_last_tool() -> None:
    """The processes end with the last tool of a group, and a new tool gets new ones."""
    async with served(tools.pid, tools.pid_later) as server:
        pid = await server.call("pid")
        crew = server.crews()["one"]
        server.registry.unregister("pid")
        gc.collect()
        assert await server.call("pid_later") == pid
        server.registry.unregister("pid_later")
        gc.collect()
        assert not crew.closed  # the garbage collector may run while a lock is held
        await until(lambda: crew.closed)
        await gone(pid)
        assert server.runner.processes == 0
        server.registry.register(tools.pid)
        assert await server.call("pid") != pid


async def test_a_tool_that_replaces_the_last_one_joins() -> None:
    """Replacing the last tool keeps the processes."""
    async with served(tools.pid) as server:
        pid = await server.call("pid")
        server.registry.unregister("pid")
        gc.collect()
        server.registry.register(tools.pid_later)
        assert await server.call("pid_later") == pid


async def test_processes_forget_tools_that_are_gone() -> None:
    """A process keeps only current tools, and at most one removed tool."""
    async with served(tools.pid) as server:
        pid = await server.call("pid")
        counts: list[int] = []
        for number in range(5):
            server.registry.register(Numbered(number))
            counts.append(await server.call(f"numbered_{number}"))
            server.registry.unregister(f"numbered_{number}")
            gc.collect()
        assert max(counts) <= 2
        assert await server.call("pid") == pid


async def test_calls_share_no_context_variables() -> None:
    """Context variables are not shared between calls of a process."""
    async with served(tools.remember, tools.remember_later) as server:
        for name in ("remember", "remember_later") * 2:
            assert (await server.client.call(name, {"user": "ada"})).text == "nobody"
