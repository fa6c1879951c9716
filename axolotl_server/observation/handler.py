"""The handler of an observed server, which also knows how long connections lasted."""

from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from axolotl_core.cancellation import CancelReason
from axolotl_server.handler import DefaultHandler
from axolotl_server.observation.numbers import Numbers
from axolotl_server.peer import Connection

__all__ = ["ObservedHandler"]


class ObservedHandler(DefaultHandler):
    """Measures connections from their beginning to their end."""

    def __init__(self, *parts: Any, numbers: Numbers) -> None:
        super().__init__(*parts)
        self._numbers = numbers
        self._began: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()

    def connect(self, connection: Connection) -> None:
        """Begin a connection."""
        self._began[connection] = perf_counter()
        super().connect(connection)

    def disconnect(self, connection: Connection, reason: CancelReason = CancelReason.DISCONNECT) -> None:
        """End a connection; one without a handshake was no session."""
        began, era = self._began.pop(connection, None), connection.era
        if began is not None and era is not None:
            self._numbers.sessions.series((era.revision.name,)).record(perf_counter() - began)
        super().disconnect(connection, reason)
