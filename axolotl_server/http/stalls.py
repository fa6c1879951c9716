"""Clients that begin a request and do not go on: uvicorn would wait for them for ever."""

import time
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["StallGuard"]

_REQUEST_TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class StallGuard:
    """Looks at all connections now and then, so that a request which arrives in time costs nothing."""

    def __init__(self, header_seconds: float, body_seconds: float) -> None:
        self._header_seconds = header_seconds
        self._body_seconds = body_seconds
        self._stalled: dict[Any, tuple[object, float]] = {}

    def look(self, connections: Iterable[Any]) -> None:
        """Close the connections that have stood at the same incomplete request for too long."""
        now = time.monotonic()
        before, self._stalled = self._stalled, {}
        for connection in tuple(connections):
            limit = self._limit_for(connection)
            if limit is None:
                continue
            request = connection.cycle
            same, since = before.get(connection, (None, now))
            self._stalled[connection] = (request, since if same is request else now)
            if now - self._stalled[connection][1] > limit:
                connection.transport.write(_REQUEST_TIMEOUT)
                connection.transport.close()

    @staticmethod
    def give_up(connections: Iterable[Any]) -> None:
        """Close the connections whose request is still incomplete, because the server ends."""
        for connection in tuple(connections):
            request = connection.cycle
            if request is not None and request.more_body and not request.response_started:
                connection.transport.write(_UNAVAILABLE)
                connection.transport.close()

    def _limit_for(self, connection: Any) -> float | None:
        """Say how long a connection may stay as it is; None where the client owes nothing."""
        request = connection.cycle
        if request is not None and not request.response_complete:
            return self._body_seconds if request.more_body else None
        return self._header_seconds if connection.timeout_keep_alive_task is None else None
