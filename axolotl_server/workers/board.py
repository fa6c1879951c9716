"""Where workers see how many connections each of them has."""

import mmap
import os
import tempfile
from typing import Final, NamedTuple

__all__ = ["Board", "Place"]

_PLACES: Final = 256
_BYTES: Final = 4
_ABSENT: Final = -1


class Board:
    """A piece of memory that all workers and their supervisor share: a number for each worker."""

    def __init__(self, descriptor: int) -> None:
        """Look at the board that a file is."""
        self._memory = mmap.mmap(descriptor, _PLACES * _BYTES)
        self._counts = memoryview(self._memory).cast("i")

    @staticmethod
    def make() -> tuple["Board", int]:
        """Make a board on which nobody is; gives the descriptor by which workers find it, too."""
        with tempfile.TemporaryFile() as file:
            file.truncate(_PLACES * _BYTES)
            descriptor = os.dup(file.fileno())
        board = Board(descriptor)
        for number in range(1, _PLACES + 1):
            board.leave(number)
        return board, descriptor

    def write(self, number: int, connections: int) -> None:
        """Say how many connections a worker has."""
        if number <= _PLACES:
            self._counts[number - 1] = connections

    def leave(self, number: int) -> None:
        """Take a worker off the board: it takes no connections."""
        self.write(number, _ABSENT)

    def fewest_of_others(self, number: int) -> int | None:
        """Give the smallest number that another worker has, None where there is no other."""
        others = [count for place, count in enumerate(self._counts, 1) if count != _ABSENT and place != number]
        return min(others, default=None)

    def close(self) -> None:
        """Look at it no more."""
        self._counts.release()
        self._memory.close()


class Place(NamedTuple):
    """What a worker needs to write on the board."""

    board: Board
    number: int
