"""Things that live for one call, and what became of them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field


@dataclass
class Ledger:
    """Notes what is made and how it ends."""

    made: list[str] = field(default_factory=list)
    ended: list[tuple[str, BaseException | None]] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    noted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def order(self) -> list[str]:
        """In which order things ended."""
        return [name for name, _ in self.ended]

    def waiting(self, name: str) -> Callable[[], "Waiting"]:
        """Give a factory of things that are entered and left with waiting."""
        return lambda: Waiting(self, name)

    def plain(self, name: str) -> Callable[[], "Plain"]:
        """Give a factory of things that are entered and left without waiting."""
        return lambda: Plain(self, name)

    def end(self, name: str, error: BaseException | None) -> None:
        """Note an end."""
        self.ended.append((name, error))
        self.threads.append(threading.get_ident())


class Waiting:
    """An asynchronous context manager, such as a session of a database."""

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
    """A context manager that may block, such as a session of a database for threads."""

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
    """Fail when it is left."""
    yield "something"
    raise RuntimeError("cannot be left")


@contextmanager
def failing_plainly() -> Iterator[str]:
    """Fail when it is left, without waiting."""
    yield "something"
    raise RuntimeError("cannot be left plainly")
