"""The tools as plain typed functions, for the peers to register."""

from collections.abc import Awaitable, Callable

from pydantic import BaseModel

MANY = 1000


class Sum(BaseModel):
    """The sum of two integers."""

    result: int


Function = Callable[[int, int], Awaitable[Sum]]


async def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(result=a + b)


def typed_functions(count: int) -> list[Function]:
    """Define functions with the signature of `add` and different names."""
    return [_numbered(number) for number in range(count)]


def _numbered(number: int) -> Function:
    async def numbered(a: int, b: int) -> Sum:
        """Add two integers."""
        return Sum(result=a + b)

    numbered.__name__ = numbered.__qualname__ = f"add_{number:04}"
    return numbered
