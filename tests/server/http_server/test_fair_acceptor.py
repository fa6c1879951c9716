"""Workers that share a listening socket share its connections fairly."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from axolotl_server.http.server.fair_acceptor import BoardPlace, ConnectionBoard, FairAcceptor
from tests.support.servers.serving import until


@pytest.fixture
def board() -> Iterator[ConnectionBoard]:
    board, descriptor = ConnectionBoard.make()
    yield board
    board.close()
    os.close(descriptor)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


class Worker:
    """Keeps the connections that it is given."""

    def __init__(self) -> None:
        self.connections: list[socket.socket] = []

    async def attach(self, connection: socket.socket) -> None:
        self.connections.append(connection)


@asynccontextmanager
async def accepting(board: ConnectionBoard, listener: socket.socket, number: int) -> AsyncIterator[Worker]:
    worker: Any = Worker()
    acceptor = FairAcceptor(worker, listener, BoardPlace(board, number))
    acceptor.start()
    try:
        yield worker
    finally:
        acceptor.close()
        acceptor.close()  # a second time does nothing
        for connection in worker.connections:
            connection.close()


def has_more(worker: Worker, before: int) -> bool:
    return len(worker.connections) > before


def test_the_board(board: ConnectionBoard) -> None:
    """A worker sees the smallest number of the others; those that accept nothing do not count."""
    assert board.fewest_of_others(1) is None
    board.write(1, 0)
    assert (board.fewest_of_others(1), board.fewest_of_others(2)) == (None, 0)
    board.write(2, 5)
    board.write(3, 2)
    assert [board.fewest_of_others(number) for number in (1, 2, 3)] == [2, 0, 0]
    before = board.changes_of_others(1), board.changes_of_others(2)
    board.leave(1)
    assert (board.changes_of_others(1), board.changes_of_others(2)) == (before[0], before[1] + 1)
    assert [board.fewest_of_others(number) for number in (1, 2, 3)] == [2, 2, 5]


def test_more_workers_than_places(board: ConnectionBoard) -> None:
    """A worker without a place on the board still serves."""
    board.write(1000, 5)
    assert board.fewest_of_others(1) is None


async def test_a_worker_with_more_connections_yields(board: ConnectionBoard, listener: socket.socket) -> None:
    """Connections go to the worker with fewer of them; while there is none, to the only one."""
    with ExitStack() as clients:
        async with accepting(board, listener, 1) as first:
            for _ in range(4):
                before = len(first.connections)
                clients.enter_context(socket.create_connection(listener.getsockname()))
                await until(partial(has_more, first, before))
            async with accepting(board, listener, 2) as second:
                for _ in range(4):
                    before = len(second.connections)
                    clients.enter_context(socket.create_connection(listener.getsockname()))
                    await until(partial(has_more, second, before))
            assert len(first.connections) == 4


async def test_outdated_numbers(
    board: ConnectionBoard, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker leaves connections to one that had many, because they may have ended just now."""
    monkeypatch.setattr("axolotl_server.http.server.fair_acceptor._YIELD_SECONDS", 60)
    board.write(2, 50)
    with ExitStack() as clients:
        for _ in range(6):
            clients.enter_context(socket.create_connection(listener.getsockname()))
        async with accepting(board, listener, 1) as worker:
            await until(lambda: len(worker.connections) == 2)
            for _ in range(4):
                clients.enter_context(listener.accept()[0])


async def test_news_of_others(board: ConnectionBoard, listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker does not wait for others that accept connections as well."""
    monkeypatch.setattr("axolotl_server.http.server.fair_acceptor._YIELD_SECONDS", 60)
    board.write(2, 50)
    with ExitStack() as clients:
        async with accepting(board, listener, 1) as worker:
            for number in range(6):
                board.write(2, 50 + number)
                clients.enter_context(socket.create_connection(listener.getsockname()))
                await until(partial(has_more, worker, number))


@pytest.mark.parametrize("published", [0, 50])
async def test_a_stuck_worker_delays_nothing(board: ConnectionBoard, listener: socket.socket, published: int) -> None:
    """If the worker with the fewest connections does not accept them, another one does."""
    board.write(2, published)
    async with accepting(board, listener, 1) as worker:
        with ExitStack() as clients:
            for _ in range(6):
                clients.enter_context(socket.create_connection(listener.getsockname()))
            await until(lambda: len(worker.connections) == 6)
        await until(lambda: board.fewest_of_others(2) == 6)
    assert board.fewest_of_others(2) is None


async def test_no_files_left(
    board: ConnectionBoard,
    listener: socket.socket,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If no connection can be accepted, that is logged, and tried again later."""
    monkeypatch.setattr("axolotl_server.http.server.fair_acceptor._OUT_OF_FILES_SECONDS", 0.01)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")]

    def failing(self: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)
    async with accepting(board, listener, 1) as worker:
        with socket.create_connection(listener.getsockname()):
            await until(lambda: len(worker.connections) == 1)
    assert "accepting connections failed, trying again in a second: Too many open files" in caplog.text
