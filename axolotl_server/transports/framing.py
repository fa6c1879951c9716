"""Cutting a stream of bytes into lines, with a limit on what is kept of one."""

from collections.abc import Iterator

__all__ = ["LineCutter"]


class LineCutter:
    """Finds complete lines in chunks of any size; a line beyond the limit is dropped up to its end."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._too_long = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Give the lines that a chunk completes, None for each that was too long."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._keep(piece)
            yield self._take()
        if rest:
            self._keep(rest)

    def finish(self) -> Iterator[bytes | None]:
        """Give the last line if the stream ended without a line break."""
        if self._parts or self._too_long:
            yield self._take()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            self._too_long = True
            self._parts.clear()
        elif not self._too_long:
            self._parts.append(piece)

    def _take(self) -> bytes | None:
        line = None if self._too_long else b"".join(self._parts)
        self._parts.clear()
        self._size, self._too_long = 0, False
        return line
