"""Type inference for per-call resources, checked by mypy."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, assert_type

from dependency_injector import providers

from axolotl_core import Context


class Session:
    """A context manager that returns itself."""

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *reason: object) -> None:
        """Do nothing."""


class Plain:
    """A class that is not a context manager."""


@asynccontextmanager
async def waiting() -> AsyncIterator[int]:
    yield 1


@contextmanager
def plain() -> Iterator[str]:
    yield "x"


async def awaited() -> bytes:
    return b""


plain_things = providers.Factory(Plain)


async def test_a_factory_says_what_it_gives() -> None:
    """Entering returns the type that the factory produces."""
    context = Context()
    assert_type(await context.enter(Session), Session)
    assert_type(await context.enter(waiting), int)
    assert_type(await context.enter(plain), str)
    assert_type(await context.enter(awaited), bytes)
    assert_type(await context.enter(Plain), Plain)
    anything: Any = await context.enter(plain_things)
    assert isinstance(anything, Plain)


def test_opening_says_it_too() -> None:
    """Opening from synchronous code has the same type."""
    context = Context()
    assert_type(context.open(plain), str)
    assert_type(context.open(Plain), Plain)
