"""Asynchronous tools that block, and some that only look as if they did; they are read, and never run."""
# ruff: noqa: ASYNC210, ASYNC221, ASYNC251 -- they are wrong on purpose

import asyncio
import os
import socket
import subprocess
import time
import time as clock
import urllib.request
from collections.abc import AsyncIterator
from time import sleep
from time import sleep as rest
from typing import Any
from urllib import request

import httpx

from axolotl_core import IPrompt, IResource, IStreamTool, ITool, NoArguments, ToolContext, tool

_SECONDS = 1


@tool
async def sleeps() -> None:
    time.sleep(_SECONDS)


@tool
async def sleeps_by_another_name() -> None:
    clock.sleep(_SECONDS)
    sleep(_SECONDS)
    rest(_SECONDS)


@tool
async def imports_itself() -> None:
    import subprocess as children
    from time import sleep as doze

    doze(_SECONDS)
    children.run(["true"], check=True)


@tool
async def runs_commands() -> bytes:
    os.system("true")
    return subprocess.check_output(["true"])


@tool
async def fetches(url: str) -> bytes:
    if url.startswith("http"):
        httpx.get(url)
    request.urlopen(url)
    with urllib.request.urlopen(url) as page:
        return bytes(page.read())


@tool
async def connects(host: str) -> None:
    socket.create_connection((host, 80))


def _wait_a_little() -> None:
    _wait()


def _wait() -> None:
    time.sleep(_SECONDS)


@tool
async def blocks_by_way_of_others() -> None:
    _wait_a_little()


class Nested(ITool[NoArguments, None]):
    """Blocks in a method and in a coroutine of its own."""

    name = "nested"

    async def execute(self, arguments: NoArguments, context: ToolContext) -> None:
        async def later() -> None:
            time.sleep(_SECONDS)

        self._fetch()
        await later()

    def _fetch(self) -> None:
        httpx.post("http://localhost")


class Streaming(IStreamTool[NoArguments, str]):
    """Blocks between two pieces."""

    name = "streaming"

    async def stream(self, arguments: NoArguments, context: ToolContext) -> AsyncIterator[str]:
        yield "one"
        time.sleep(_SECONDS)
        yield "two"


class Speech(IPrompt[NoArguments]):
    """A prompt that blocks."""

    name = "speech"

    async def render(self, arguments: NoArguments, context: ToolContext) -> str:
        time.sleep(_SECONDS)
        return "late"


class Page(IResource):
    """A resource that blocks."""

    name = "page"
    uri = "blocking://page"

    async def read(self, context: ToolContext) -> str:
        time.sleep(_SECONDS)
        return "late"


class Service:
    """Has a tool that blocks in another method."""

    @tool
    async def method(self) -> None:
        self.wait()

    def wait(self) -> None:
        time.sleep(_SECONDS)


@tool
async def awaits() -> None:
    """Does it right."""
    await asyncio.sleep(0)
    await asyncio.to_thread(time.sleep, _SECONDS)
    await asyncio.to_thread(lambda: time.sleep(_SECONDS))
    await asyncio.create_subprocess_exec("true")

    def in_a_thread() -> None:
        time.sleep(_SECONDS)

    await asyncio.to_thread(in_a_thread)


@tool
async def has_its_own(time: Any, run: Any) -> None:
    """Calls what it was given."""
    time.sleep(_SECONDS)
    run()


@tool
def plain() -> None:
    time.sleep(_SECONDS)


@tool
async def recursive() -> None:
    _ping()


def _ping() -> None:
    _pong()


def _pong() -> None:
    _ping()


sourceless: dict[str, Any] = {}
exec("import time\nasync def made() -> None:\n    time.sleep(_SECONDS)\n", sourceless)
