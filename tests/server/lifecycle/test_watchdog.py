"""The watchdog: code that blocks the event loop is logged and counted."""

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from axolotl_cli.runtime import run
from axolotl_core import tool
from axolotl_server import InProcessClient, ServerHost, connect
from axolotl_server.execution.watchdog import Watchdog
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stall_log import shown_stalls
from tests.support.tools import container_of


class Listener(logging.Handler):
    """Records stalls."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.stacks: list[str] = []
        self.told = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "event loop" in record.getMessage():
            self.heard.append(record.getMessage())
            self.stacks.append(record.stack_info or "")
            self.told.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report short stalls."""
    monkeypatch.setattr("axolotl_server.host.STALL_SECONDS", 0.02)


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Capture the log."""
    handler = Listener()
    logging.getLogger("axolotl").addHandler(handler)
    with shown_stalls():
        yield handler
    logging.getLogger("axolotl").removeHandler(handler)


async def test_a_coroutine_that_blocks_is_named(listener: Listener) -> None:
    """The log shows the stack of the blocking code, and each stall counts once."""

    @tool
    async def blocks_the_loop() -> bool:
        listener.told.clear()
        told = listener.told.wait(PATIENCE_SECONDS)
        threading.Event().wait(0.1)  # continues, which is not logged again
        return told

    async with ServerHost(container_of(blocks_the_loop)) as host:
        client = InProcessClient(host.handler)
        for _ in range(2):
            await asyncio.sleep(0)  # a stall ends with a turn of the loop; from Python 3.12 on, calls begin before that
            assert (await client.call("blocks_the_loop")).structured is True
        assert host.watchdog is not None
        assert host.watchdog.stalls >= 2
        await client.close()
    assert len([message for message in listener.heard if f"by blocks_the_loop ({__file__}:" in message]) == 2
    [stack, _] = [stack for stack in listener.stacks if "in blocks_the_loop" in stack]
    assert "axolotl_server" not in stack


async def test_a_stall_that_blocks_the_watchdog_is_reported(listener: Listener) -> None:
    """A stall that also blocks the watchdog's thread is reported when it ends."""

    @tool
    async def holds_everything() -> int:
        return sum(range(2 * 10**7))

    async with ServerHost(container_of(holds_everything)) as host:
        await asyncio.sleep(0)  # the watchdog starts with the next turn of the loop
        client = InProcessClient(host.handler)
        await client.call("holds_everything")
        assert await asyncio.to_thread(listener.told.wait, PATIENCE_SECONDS)
        assert host.watchdog is not None
        assert host.watchdog.stalls
        await client.close()


@pytest.mark.parametrize("loop", ["usual", "asyncio"])
def test_the_server_itself_is_not_blamed(listener: Listener, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    """A stall outside all code of the user names neither the command nor the loop that runs everything."""
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)  # as if it were not installed
    blocked = threading.Lock()
    blocked.acquire()

    def unblock() -> None:
        listener.told.wait(PATIENCE_SECONDS)
        blocked.release()

    async def work() -> None:
        watchdog = Watchdog(0.02)
        watchdog.start()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(blocked.acquire)  # which has no frame
        await asyncio.sleep(0)
        watchdog.stop()

    threading.Thread(target=unblock).start()
    run(work())
    assert ["by no code of yours" in message for message in listener.heard] == [True]


async def test_startup_is_not_a_stall() -> None:
    """The start of a server does not count as a stall."""
    watchdog = Watchdog(0.01)
    watchdog.start()
    threading.Event().wait(0.1)
    await asyncio.sleep(0)
    watchdog.stop()
    assert watchdog.stalls == 0


async def test_it_ends_with_its_server() -> None:
    """The watchdog's thread ends with the server."""
    before = _watchdogs()
    async with connect(container_of()):
        (own,) = _watchdogs() - before
    await asyncio.to_thread(own.join, PATIENCE_SECONDS)
    assert not own.is_alive()


def _watchdogs() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "axolotl-watchdog"}


def test_it_ends_with_its_loop() -> None:
    """The watchdog's thread ends with the event loop."""
    before = _watchdogs()

    async def forget() -> None:
        Watchdog(0.01).start()

    asyncio.run(forget())
    for own in _watchdogs() - before:
        own.join(PATIENCE_SECONDS)
        assert not own.is_alive()
