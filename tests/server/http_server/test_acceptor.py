"""Workers that share a listening socket share its connections."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

import pytest

from axolotl_server.http.server import serve
from axolotl_server.http.server.serve import Acceptor
from tests.support.servers.serving import until


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield listener


class Worker:
    """Keeps the connections that it is given."""

    def __init__(self) -> None:
        self.connections: list[socket.socket] = []

    async def attach(self, connection: socket.socket) -> None:
        self.connections.append(connection)


@asynccontextmanager
async def accepting(listener: socket.socket, *, is_shared: bool) -> AsyncIterator[Worker]:
    worker: Any = Worker()
    acceptor = Acceptor(worker, listener, is_shared=is_shared)
    try:
        yield worker
    finally:
        acceptor.close()
        acceptor.close()  # a second time does nothing
        for connection in worker.connections:
            connection.close()


async def test_one_worker_accepts_everything_at_once(listener: socket.socket) -> None:
    """A worker that is alone leaves no connection in the kernel, where no limit sees it."""
    with ExitStack() as clients:
        for _ in range(64):
            clients.enter_context(socket.create_connection(listener.getsockname()))
        async with accepting(listener, is_shared=False) as worker:
            await until(lambda: bool(worker.connections))
            assert len(worker.connections) == 64


async def sharing(listener: socket.socket, count: int, stack: AsyncExitStack) -> list[Worker]:
    """Start workers, each with a descriptor of its own: a loop watches each descriptor once."""
    listeners = [stack.enter_context(listener.dup()) for _ in range(count)]
    return [await stack.enter_async_context(accepting(own, is_shared=True)) for own in listeners]


def counts(workers: list[Worker]) -> list[int]:
    return [len(worker.connections) for worker in workers]


@pytest.mark.parametrize("count", [8, 64])
async def test_many_at_once_are_shared_out(listener: socket.socket, count: int) -> None:
    """Connections that wait together go to all workers, also after quiet times."""
    async with AsyncExitStack() as stack:
        workers = await sharing(listener, 2, stack)
        for number in range(1, 5):
            stack.enter_context(socket.create_connection(listener.getsockname()))
            await until(lambda number=number: sum(counts(workers)) == number)  # type: ignore[misc]
        before = counts(workers)
        for _ in range(count):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        await until(lambda: sum(counts(workers)) == 4 + count)
        assert min(now - then for now, then in zip(counts(workers), before, strict=True)) >= count // 4


async def test_one_after_the_other_are_shared_out(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has just accepted a connection leaves the next one to others."""
    monkeypatch.setattr(serve, "_YIELD_SECONDS", 60)
    async with AsyncExitStack() as stack:
        workers = await sharing(listener, 3, stack)
        for number in range(1, 4):
            stack.enter_context(socket.create_connection(listener.getsockname()))
            await until(lambda number=number: sum(counts(workers)) == number)  # type: ignore[misc]
        assert counts(workers) == [1, 1, 1]


async def test_a_stuck_worker_delays_nothing(listener: socket.socket) -> None:
    """Connections that no other worker accepts are accepted after a moment, more each time."""
    with ExitStack() as clients:
        for _ in range(80):
            clients.enter_context(socket.create_connection(listener.getsockname()))
        async with accepting(listener, is_shared=True) as worker:
            await until(lambda: len(worker.connections) == 80)


async def test_a_closed_worker_accepts_nothing(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is closed while it leaves connections to others never accepts them."""
    monkeypatch.setattr(serve, "_YIELD_SECONDS", 0.001)
    with ExitStack() as clients:
        clients.enter_context(socket.create_connection(listener.getsockname()))
        async with accepting(listener, is_shared=True) as replaced:
            await until(lambda: bool(replaced.connections))
        clients.enter_context(socket.create_connection(listener.getsockname()))
        await asyncio.sleep(0.01)  # sleeps: nothing must happen
        clients.enter_context(listener.accept()[0])


@pytest.mark.parametrize("is_shared", [True, False])
async def test_no_files_left(
    is_shared: bool, listener: socket.socket, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no connection can be accepted, that is logged, and tried again later."""
    monkeypatch.setattr(serve, "_OUT_OF_FILES_SECONDS", 0.01)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")]

    def failing(self: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)
    async with accepting(listener, is_shared=is_shared) as worker:
        with socket.create_connection(listener.getsockname()):
            await until(lambda: not failures)
            assert not asyncio.get_running_loop().remove_reader(listener)  # it would be called all the time
            await until(lambda: len(worker.connections) == 1)
    assert "accepting connections failed, trying again in a second: Too many open files" in caplog.text
