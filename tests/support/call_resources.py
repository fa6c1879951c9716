"""Per-call resources that record how they end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field


@dataclass
class Ledger:
    """Records what is created and how it ends."""

    made: list[str] = field(default_factory=list)
    ended: list[tuple[str, BaseException | None]] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    noted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def order(self) -> list[str]:
        """The order in which resources ended."""
        return [name for name, _ in self.ended]

    def waiting(self, name: str) -> Callable[[], "Waiting"]:
        """Return a factory of asynchronous context managers."""
        return lambda: Waiting(self, name)

    def plain(self, name: str) -> Callable[[], "Plain"]:
        """Return a factory of synchronous context managers."""
        return lambda: Plain(self, name)

    def end(self, name: str, error: BaseException | None) -> None:
        """Record an end."""
        self.ended.append((name, error))
        self.threads.append(threading.get_ident())


class Waiting:
    """An asynchronous context manager, such as a database session."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.ledger = ledger
        self.name = name

    async def __aenter__(self) -> "Waiting":
        self.ledger.made.append(self.name)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await asyncio.sleep(0)
        self.ledger.end(self.name, error)


class Plain:
    """A context manager that may block, such as a database session for threads."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.ledger = ledger
        self.name = name

    def __enter__(self) -> "Plain":
        self.ledger.made.append(self.name)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.ledger.end(self.name, error)


@asynccontextmanager
async def failing() -> AsyncIterator[str]:
    """Fail on exit."""
    yield "something"
    raise RuntimeError("cannot be left")


@contextmanager
def failing_plainly() -> Iterator[str]:
    """Fail on exit, synchronously."""
    yield "something"
    raise RuntimeError("cannot be left plainly")
