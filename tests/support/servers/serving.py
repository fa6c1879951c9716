"""Real servers for tests: over HTTP in this process, over stdio in a process of their own."""

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from typing import Any

import uvicorn
from dependency_injector import containers, providers

from axolotl_server import HttpApp, ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.http_server.serve import reply_at_once
from tests.support.commands import ROOT

PATIENCE_SECONDS = 20.0
"""How long a test waits for something that must happen."""
_GRACE_SECONDS = 1.0
"""How long requests have that are still running when their server stops."""


async def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Let the loop run until something is so that has no event of its own."""
    async with asyncio.timeout(seconds):
        for _ in itertools.takewhile(lambda _: not condition(), itertools.count()):
            await asyncio.sleep(0)


@dataclass(frozen=True)
class HttpServer:
    """A server that listens on a port of its own."""

    host: ServerHost
    app: HttpApp
    port: int

    @property
    def url(self) -> str:
        """Where messages are posted."""
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def serving(
    container: containers.Container,
    settings: Mapping[str, Any] | None = None,
    listener: socket.socket | None = None,
    **roles: Any,
) -> AsyncIterator[HttpServer]:
    """Serve a container over HTTP on the running loop, with these objects for roles that it does not have."""
    for name, role in roles.items():
        setattr(container, name, providers.Object(role))
    async with ServerHost(container, flags=settings) as host:
        app, listener = make_app(host, reply_at_once), listener or free_port()
        server = await _start(app, listener)
        try:
            yield HttpServer(host, app, listener.getsockname()[1])
        finally:
            app.sessions.end_streams()
            await _stop(server)


async def _start(app: HttpApp, listener: socket.socket) -> uvicorn.Server:
    # Not by `uvicorn.Server.serve`: it looks ten times a second whether it is to stop.
    config = uvicorn.Config(app, http="httptools", loop="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    await server.on_tick(0)  # makes the headers that all replies have
    return server


async def _stop(server: uvicorn.Server) -> None:
    state = server.server_state
    for listener in server.servers:
        listener.close()
    for connection in tuple(state.connections):
        connection.shutdown()
    if state.tasks:
        _, late = await asyncio.wait(tuple(state.tasks), timeout=_GRACE_SECONDS)
        for task in late:
            task.cancel()
    with contextlib.suppress(TimeoutError):
        await until(lambda: not state.connections, _GRACE_SECONDS)
    for connection in tuple(state.connections):
        connection.transport.abort()


class BackgroundServers:
    """HTTP servers on a loop in a thread, one a container, each started when it is first asked for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = contextlib.AsyncExitStack()
        self._servers: dict[type[containers.DeclarativeContainer], HttpServer] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-servers")
        self._thread.start()

    def url(self, container: type[containers.DeclarativeContainer]) -> str:
        """Serve a container, if that is not done yet, and say where."""
        if container not in self._servers:
            opening = self._stack.enter_async_context(serving(container()))
            self._servers[container] = asyncio.run_coroutine_threadsafe(opening, self._loop).result(PATIENCE_SECONDS)
        return self._servers[container].url

    def close(self) -> None:
        """Stop all servers."""
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class StdioServer:
    """A server in a process of its own, spoken to through its standard streams."""

    def __init__(self, process: Any, stdin: int, stdout: int) -> None:
        self._process = process
        self._descriptors = stdin, stdout
        self._reader = asyncio.StreamReader(limit=2**26, loop=asyncio.get_running_loop())
        self._writer: asyncio.WriteTransport

    async def connect(self) -> None:
        """Take hold of the server's streams."""
        loop = asyncio.get_running_loop()
        stdin, stdout = self._descriptors
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(stdout, "rb", 0))
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(stdin, "wb", 0))

    def send(self, data: bytes) -> None:
        """Write a line."""
        self._writer.write(data + b"\n")

    async def receive(self) -> bytes:
        """Wait for a line."""
        line = await self._reader.readline()
        assert line.endswith(b"\n"), f"the server ended after {line!r}"
        return line[:-1]

    async def close(self) -> tuple[int, bytes]:
        """Close the server's stdin and wait for its end; gives its exit code and what it still said."""
        self._writer.close()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                rest = await self._reader.read()
        finally:
            await asyncio.to_thread(self._process.join, PATIENCE_SECONDS)
        code: int | None = self._process.exitcode
        assert code is not None, "the server does not end"
        self._process.close()
        return code, rest


class StdioServers:
    """Processes for hundreds of transcripts: forked from one that has the imports behind it, each a moment before it is
    needed; from there on they are `axolotl serve`."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.support.servers.preload"])
        self._spare: dict[str, tuple[Any, int, int]] = {}

    async def start(self, target: str) -> StdioServer:
        """Serve a target, and have the next server for it ready soon."""
        process, stdin, stdout = self._spare.pop(target) if target in self._spare else self._fork(target)
        server = StdioServer(process, stdin, stdout)
        await server.connect()
        self._spare[target] = self._fork(target)
        return server

    def close(self) -> None:
        """End the servers that nobody needed."""
        for process, stdin, stdout in self._spare.values():
            os.close(stdin)
            process.join(PATIENCE_SECONDS)
            process.close()
            os.close(stdout)

    def _fork(self, target: str) -> tuple[Any, int, int]:
        incoming, stdin = os.pipe()
        stdout, outgoing = os.pipe()
        process = self._context.Process(target=_serve, args=(target, DupFd(incoming), DupFd(outgoing)))
        process.start()
        os.close(incoming)
        os.close(outgoing)
        return process, stdin, stdout


def _serve(target: str, incoming: Any, outgoing: Any) -> None:
    from axolotl_cli.app import main

    for standard, given in ((0, incoming.detach()), (1, outgoing.detach())):
        os.dup2(given, standard)
        os.close(given)
    os.chdir(ROOT)
    sys.argv = ["axolotl", "serve", target]
    main()


def free_port(port: int = 0) -> socket.socket:
    """Listen at a free port, or at a given one."""
    # asyncio switches Nagle's algorithm off only where the protocol is named: without it a reply takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener
