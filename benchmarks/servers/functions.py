"""The tools as plain typed functions, the form that the peers register."""

from collections.abc import Awaitable, Callable

from pydantic import BaseModel

MANY = 1000


class Sum(BaseModel):
    """Hold the sum of two integers."""

    result: int


Function = Callable[[int, int], Awaitable[Sum]]


async def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(result=a + b)


def typed_functions(count: int) -> list[Function]:
    """Define functions with the signature of `add` and names of their own."""
    return [_numbered(number) for number in range(count)]


def _numbered(number: int) -> Function:
    async def numbered(a: int, b: int) -> Sum:
        """Add two integers."""
        return Sum(result=a + b)

    numbered.__name__ = numbered.__qualname__ = f"add_{number:04}"
    return numbered
