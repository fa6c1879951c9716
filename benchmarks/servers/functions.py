"""The tools as plain typed functions, for the peers to register."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from pydantic import BaseModel

MANY: Final = {"thousand": 1000, "ten_thousand": 10_000}
BUSY_SECONDS: Final = 0.005


class Sum(BaseModel):
    """The sum of two integers."""

    result: int


Function = Callable[[int, int], Awaitable[Sum]]


async def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(result=a + b)


async def busy_add(a: int, b: int) -> Sum:
    """Add two integers after some milliseconds of computation."""
    spin()
    return Sum(result=a + b)


busy_add.__name__ = "add"


async def sized(text: str, size: int) -> str:
    """Return the length of a text, and a text of the given size."""
    return f"{len(text)} {'x' * size}"


def spin() -> None:
    """Use some milliseconds of processor time, however busy the machine is."""
    end = time.thread_time() + BUSY_SECONDS
    while time.thread_time() < end:
        pass


def typed_functions(count: int) -> list[Function]:
    """Define functions with the signature of `add` and different names."""
    return [_numbered(number) for number in range(count)]


def _numbered(number: int) -> Function:
    async def numbered(a: int, b: int) -> Sum:
        """Add two integers."""
        return Sum(result=a + b)

    numbered.__name__ = numbered.__qualname__ = f"add_{number:04}"
    return numbered
