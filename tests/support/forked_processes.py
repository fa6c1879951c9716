"""Processes that tests observe from outside."""

import asyncio
import multiprocessing
import os
from pathlib import Path
from types import TracebackType

import psutil

from tests.support.servers.serving import PATIENCE_SECONDS


def share_forks() -> None:
    """Choose the modules that the fork server imports, before it is started."""
    modules = [
        "axolotl_server.execution.process_worker",
        "tests.support.containers.process_tools",
        "tests.faults.tools",
    ]
    multiprocessing.get_context("forkserver").set_forkserver_preload(modules)


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended, whoever started it."""
    try:
        psutil.Process(pid).wait(PATIENCE_SECONDS)
    except psutil.NoSuchProcess:
        return


async def gone(pid: int) -> None:
    """Do the same without blocking the loop."""
    await asyncio.to_thread(wait_until_gone, pid)


class Mailbox:
    """A named pipe into which processes write their ids, one per line."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "mailbox"

    def __enter__(self) -> "Mailbox":
        os.mkfifo(self._path)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)  # also for writing: it never ends
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    @property
    def path(self) -> str:
        """The path of the pipe."""
        return str(self._path)

    def taken(self) -> list[int]:
        """Read the available ids."""
        try:
            return [int(line) for line in os.read(self._descriptor, 4096).split()]
        except BlockingIOError:
            return []

    async def take(self) -> int:
        """Wait for a line."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._descriptor, arrived.set)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await arrived.wait()
        finally:
            loop.remove_reader(self._descriptor)
        return self.taken()[0]
