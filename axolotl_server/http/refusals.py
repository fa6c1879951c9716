"""Requests that end before a method sees them, each with its HTTP status."""

from axolotl_core.errors import InvalidRequest

__all__ = ["HttpRefusal"]


class HttpRefusal(InvalidRequest):
    """The transport refuses the request; the message says what to change."""

    def __init__(self, status: int, message: str, *, allow: bytes | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.allow = allow
