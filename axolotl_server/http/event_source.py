"""Server-sent events as bytes."""

from typing import Final

__all__ = ["KEEP_ALIVE", "endpoint", "event", "priming", "retry"]

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients ignore and proxies see."""


def event(message: bytes, event_id: str | None = None) -> bytes:
    """Frame a message."""
    if event_id is None:
        return b"event: message\ndata: %b\n\n" % message
    return b"id: %b\nevent: message\ndata: %b\n\n" % (event_id.encode(), message)


def priming(event_id: str) -> bytes:
    """Give a client an id to come back with before there is anything to say."""
    return b"id: %b\ndata:\n\n" % event_id.encode()


def retry(seconds: float) -> bytes:
    """Tell a client how long to wait before it comes back."""
    return b"retry: %d\n\n" % round(seconds * 1000)


def endpoint(uri: str) -> bytes:
    """Tell a client of the transport with two endpoints where to post."""
    return b"event: endpoint\ndata: %b\n\n" % uri.encode()
