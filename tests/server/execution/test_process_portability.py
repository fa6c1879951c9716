"""Tools that can be sent to processes, and the end of processes."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import psutil
import pytest
from dependency_injector import providers
from pydantic import BaseModel

from axolotl_core import ConfigurationError, Context, ITool, NoArguments, ToolRegistry, tool, tools_of
from axolotl_server import InProcessClient, ServerHost, connect
from tests.support.containers import process_tools
from tests.support.forked_processes import Mailbox, gone, share_forks, wait_until_gone
from tests.support.processes import Processes
from tests.support.servers.serving import until
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

share_forks()

SERVER = "tests.support.containers.process_tools:Container"


class Holding(ITool[NoArguments, str]):
    """Holds an object that cannot be pickled."""

    name = "holding"
    execution = "process"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "never"


def plain() -> str:
    return "plain"


renamed = tool(name="renamed", execution="process")(plain)


def local_tool() -> Any:
    @tool(execution="process")
    def hidden() -> str:
        return "never"

    return hidden


def with_local_input() -> Any:
    class Local(BaseModel):
        x: int = 0

    class Taking(ITool[Local, str]):
        name = "taking"
        execution = "process"

        async def execute(self, arguments: Local, context: Context) -> str:
            return "never"

    Taking.__qualname__ = "Taking"
    globals()["Taking"] = Taking
    return Taking()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (Holding, "it cannot be sent"),
        (local_tool, "it cannot be sent"),
        (lambda: renamed, "it cannot be sent"),
        (with_local_input, "its input cannot be sent"),
    ],
)
async def test_a_tool_that_cannot_be_sent_prevents_the_start(make: Any, what: str) -> None:
    """The server does not start with a tool that cannot be sent, and explains the solution."""
    with pytest.raises(ConfigurationError, match=what) as caught:
        await ServerHost(container_of(make())).start()
    assert "top of a module" in str(caught.value)


class Counter:
    """An object whose method runs in a process."""

    def __init__(self, start: int) -> None:
        self.start = start

    @tool(execution="process")
    def count(self, by: int) -> int:
        return self.start + by


async def test_methods_travel_with_their_objects() -> None:
    """A method runs on a copy of its object."""
    container = container_of()
    container.tools = providers.Callable(tools_of, providers.Singleton(Counter, 40))
    async with connect(container) as client:
        assert (await client.call("count", {"by": 2})).structured == 42


async def test_processes_end_with_their_server() -> None:
    """A server that stops leaves no process behind, idle or busy."""
    async with ServerHost(container_of(process_tools.whoami)) as host:
        client = InProcessClient(host.handler)
        pid = (await client.call("whoami")).structured["pid"]
        await client.close()
    await gone(pid)
    await until(lambda: host.assembly.processes.processes == 0)


async def test_processes_end_with_their_tool() -> None:
    """Removing a tool ends its processes."""
    container, registry = container_of(), ToolRegistry()
    container.tool_registry = providers.Object(registry)
    async with ServerHost(container) as host:
        client = InProcessClient(host.handler)
        registry.register(process_tools.whoami)
        pid = (await client.call("whoami")).structured["pid"]
        registry.unregister("whoami")
        gc.collect()
        await gone(pid)
        await client.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_processes_do_not_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    """If the server is killed, its processes end, whether they are idle or run Python code or C code."""
    with Processes() as processes, Mailbox(tmp_path) as mailbox:
        server = processes.start(
            *("serve", SERVER), AXOLOTL_TOOLS__SPIN__TIMEOUT_SECONDS="60", AXOLOTL_TOOLS__MATCH__TIMEOUT_SECONDS="60"
        )
        server.shake_hands()
        pids = [server.ask("tools/call", name="whoami", arguments={})["structuredContent"]["pid"]]
        for name in ("spin", "match"):
            params = {"name": name, "arguments": {"path": mailbox.path}}
            server.say({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params})
            pids.append(asyncio.run(mailbox.take()))
        assert all(map(psutil.pid_exists, pids))
        server.signal(signal.SIGKILL)
        for pid in pids:
            wait_until_gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_only_the_server() -> None:
    """Ctrl-C ends the server without output from its processes."""
    with Processes() as processes:
        server = processes.start("serve", SERVER)
        server.shake_hands()
        server.ask("tools/call", name="whoami", arguments={})
        server.signal(signal.SIGINT)
        assert server.end() == (0, "", "")


def test_inspecting_a_server_leaves_no_process() -> None:
    """A command that only inspects tools leaves no process behind."""
    command = [sys.executable, "-m", "axolotl_cli", "inspect", SERVER]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "did not end" not in done.stderr


UNGUARDED = """
import asyncio
from dependency_injector import containers, providers
from axolotl_core import tool
from axolotl_server import connect

@tool(execution="process")
def work() -> int:
    "Work."
    return 1

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(work))

async def main():
    async with connect(Container()) as client:
        print((await client.call("work")).text)

asyncio.run(main())
"""


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    """A script that starts a server when a tool process imports it is told to use a guard, in one line."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert 'put the code that starts it below if __name__ == "__main__":' in done.stderr
    assert "freeze_support" not in done.stderr


def test_names_of_the_fork_server() -> None:
    """The private names of `multiprocessing.forkserver` that tool processes use exist in this version of Python."""
    assert isinstance(forkserver._forkserver, forkserver.ForkServer)
    fresh = vars(forkserver.ForkServer())
    assert (fresh["_preload_modules"], fresh["_forkserver_alive_fd"]) == (["__main__"], None)
