"""Servers to be stopped: tools that are slow or never end, and resources that report when they are closed."""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from dependency_injector import containers, providers

from axolotl_core import Context, tool
from axolotl_core.health import HealthStatus, IHealthCheck
from tests.support.tools import Name, echo

LONG = 60.0


def say(text: str) -> None:
    """Write a line that the test waits for."""
    print(text, file=sys.stderr, flush=True)


_begun: list[int] = []
_together = asyncio.Event()


def sleep_long() -> None:
    """Block the main thread; a signal right before a sleep is handled after it, so each sleep is short."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        time.sleep(0.05)  # sleeps: it blocks on purpose


@tool(timeout_seconds=LONG)
async def work_together(total: int, number: int, seconds: float) -> int:
    """Wait until a number of calls run, report it, and end some time later."""
    _begun.append(number)
    if len(_begun) == total:
        say("all calls run")
        _together.set()
    await _together.wait()
    await asyncio.sleep(seconds)
    return number


@tool(timeout_seconds=LONG)
async def hang() -> None:
    """Never end, but obey cancellation."""
    say("hang runs")
    await asyncio.Event().wait()


@tool(timeout_seconds=LONG)
async def swallow() -> None:
    """Never end, and ignore every cancellation."""
    say("swallow runs")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@tool(timeout_seconds=LONG)
def block() -> None:
    """Block a thread."""
    say("block runs")
    threading.Event().wait(LONG)


@tool(execution="process", timeout_seconds=LONG)
def spin() -> None:
    """Never end and never wait, in a tool process."""
    say("spin runs")
    while True:
        pass


@tool(timeout_seconds=LONG)
async def hold_the_loop() -> None:
    """Block the event loop."""
    say("hold_the_loop runs")
    sleep_long()


@tool(timeout_seconds=LONG)
async def read_late(path: str) -> str:
    """Return the content of a pipe as soon as it is written."""
    say("read_late runs")
    return await asyncio.to_thread(Path(path).read_text)


@tool(timeout_seconds=LONG)
async def ask_name(context: Context) -> str:
    """Ask for a name."""
    return (await context.ask(Name, "Who are you?")).name


@tool(timeout_seconds=LONG)
async def ask_late(context: Context, path: str) -> str:
    """Ask for a name each time a pipe is written to."""
    say("ask_late runs")
    await asyncio.to_thread(Path(path).read_text)
    while True:
        try:
            return (await context.ask(Name, "Who are you?")).name
        except Exception:
            continue


@tool(task_support="optional", timeout_seconds=LONG)
async def linger() -> None:
    """Never end, as a task if requested."""
    say("linger runs")
    await asyncio.Event().wait()


@tool(task_support="optional", timeout_seconds=LONG)
async def ask_as_task(context: Context) -> str:
    """Ask for a name, as a task if requested."""
    return (await context.ask(Name, "Who are you?")).name


ALL = (
    *(work_together, echo, hang, swallow, block, hold_the_loop, read_late),
    *(ask_name, ask_late, linger, ask_as_task),
)


class Switch(IHealthCheck):
    """Fails while a file exists."""

    name = "switch"

    def __init__(self, path: str | None) -> None:
        self._path = path

    async def check(self) -> HealthStatus | None:
        return HealthStatus.failed("switched off") if self._is_off() else None

    def _is_off(self) -> bool:
        return self._path is not None and Path(self._path).exists()


def database() -> Iterator[str]:
    """A resource without dependencies."""
    yield "database"
    say("database closed")


async def cache(client: object) -> AsyncIterator[str]:
    """A resource that depends indirectly on the database."""
    yield "cache"
    say("cache closed")


def journal() -> Iterator[str]:
    """A resource without dependencies that fails to close."""
    yield "journal"
    say("journal closed")
    raise OSError("the journal is full")


class Container(containers.DeclarativeContainer):
    """All tools and resources; dependent resources are declared before and after their dependencies."""

    config = providers.Configuration()
    tools = providers.List(*map(providers.Object, ALL))
    database = providers.Resource(database)
    client: providers.Singleton[list[str]] = providers.Singleton(list, database)
    cache = providers.Resource(cache, client)
    journal = providers.Resource(journal)
    health_checks = providers.List(providers.Singleton(Switch, config.switch))


def container() -> Container:
    """Create the container from environment variables."""
    made = Container()
    made.config.switch.from_env("TEST_SWITCH")
    return made


class Stuck(containers.DeclarativeContainer):
    """Code that never ends, in every way; its processes keep the log open briefly after the server has ended."""

    tools = providers.List(*map(providers.Object, (hang, swallow, block, spin)))


def slow() -> Iterator[None]:
    """Never close."""
    yield
    say("closing for ever")
    sleep_long()


class SlowToClose(containers.DeclarativeContainer):
    """A server with a resource that never closes."""

    tools = providers.List(providers.Object(echo))
    slow = providers.Resource(slow)
