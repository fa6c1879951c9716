"""Routes to a server: a client library, an era of the protocol and a transport."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pytest

Library: TypeAlias = Literal["official", "fastmcp"]
Mode: TypeAlias = Literal["legacy", "auto", "2026-07-28"]
Transport: TypeAlias = Literal["stdio", "http", "sse"]


@dataclass(frozen=True)
class Way:
    """One route."""

    library: Library
    mode: Mode
    transport: Transport

    @property
    def stateless(self) -> bool:
        """Whether the route uses the stateless revision."""
        return self.mode != "legacy"

    def __str__(self) -> str:
        return f"{self.library}-{self.mode}-{self.transport}"


WAYS = (
    Way("official", "legacy", "stdio"),
    Way("official", "legacy", "http"),
    Way("official", "legacy", "sse"),
    Way("official", "auto", "stdio"),
    Way("official", "auto", "http"),
    Way("official", "2026-07-28", "stdio"),
    Way("official", "2026-07-28", "http"),
    Way("fastmcp", "legacy", "stdio"),
    Way("fastmcp", "legacy", "http"),
    Way("fastmcp", "legacy", "sse"),
    Way("fastmcp", "auto", "stdio"),
    Way("fastmcp", "auto", "http"),
)
HANDSHAKE_WAYS = tuple(way for way in WAYS if not way.stateless)
STATELESS_WAYS = tuple(way for way in WAYS if way.stateless)
LISTENING_WAYS = tuple(way for way in STATELESS_WAYS if way.library == "official")
"""Routes whose client can subscribe without a session."""
RESUMING_WAYS = tuple(way for way in HANDSHAKE_WAYS if way.transport == "http")
"""Routes whose client resumes a broken connection."""
SHARED_WAYS = tuple(way for way in WAYS if way.transport != "stdio")
"""Routes to the same server."""

by_every_way = pytest.mark.parametrize("peer", WAYS, ids=str, indirect=True)
by_handshake_ways = pytest.mark.parametrize("peer", HANDSHAKE_WAYS, ids=str, indirect=True)
by_stateless_ways = pytest.mark.parametrize("peer", STATELESS_WAYS, ids=str, indirect=True)
