"""Requests that end before a method sees them, each with its HTTP status."""

from collections.abc import Sequence

from axolotl_core.errors import InvalidRequest

__all__ = ["HttpRefusal"]


class HttpRefusal(InvalidRequest):
    """The transport refuses the request; the message says what to change."""

    def __init__(self, status: int, message: str, *, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        """What the response says besides, such as a challenge."""
