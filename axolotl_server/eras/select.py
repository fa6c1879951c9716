"""Which generation a message belongs to, decided for each message."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from axolotl_core.protocol.messages import Head
from axolotl_core.protocol.versions import (
    HANDSHAKE_REVISIONS,
    LATEST_HANDSHAKE_REVISION,
    LATEST_STATELESS_REVISION,
)
from axolotl_server.eras.base import IEra
from axolotl_server.peer import Connection, IExchange

__all__ = ["HANDSHAKE_VERSIONS", "Eras"]

HANDSHAKE_VERSIONS: Final = frozenset({b"", *(revision.name.encode() for revision in HANDSHAKE_REVISIONS)})
"""Values of the version header that do not ask for a stateless revision; its absence is one."""


class Eras:
    """All generations that a server speaks."""

    def __init__(self, eras: Sequence[IEra]) -> None:
        self._by_name: Mapping[str, IEra] = {era.revision.name: era for era in eras}
        self.opening = self._by_name[LATEST_HANDSHAKE_REVISION.name]
        """Stands in for a connection's era before its handshake."""
        self.stateless = self._by_name[LATEST_STATELESS_REVISION.name]

    @property
    def all(self) -> Iterable[IEra]:
        """Every one of them."""
        return self._by_name.values()

    def negotiate(self, requested: str) -> IEra:
        """Answer a handshake: with the revision asked for, or with the latest that a handshake can reach."""
        era = self._by_name.get(requested, self.opening)
        return self.opening if era.revision.stateless else era

    def select(self, head: Head, exchange: IExchange) -> tuple[IEra, Connection | None]:
        """Find the era and, where there is one, the connection of a message.

        Raises:
            ProtocolError: if it belongs to a session that is not there.
        """
        meta = head.params.meta
        headers = exchange.headers
        if meta is not UNSET and meta.version is not UNSET:
            return self.stateless, exchange.connection() if headers is None else None
        if head.method == "initialize":
            return self.opening, None
        if headers is not None and headers.get(b"mcp-protocol-version", b"") not in HANDSHAKE_VERSIONS:
            return self.stateless, None
        connection = exchange.connection()
        return connection.era or self.opening, connection
