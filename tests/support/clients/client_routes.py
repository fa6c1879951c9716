"""The ways to a server: which client, in which era of the protocol, over which transport."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pytest

Library: TypeAlias = Literal["official", "fastmcp"]
Mode: TypeAlias = Literal["legacy", "auto", "2026-07-28"]
Transport: TypeAlias = Literal["stdio", "http", "sse"]


@dataclass(frozen=True)
class Way:
    """One of them."""

    library: Library
    mode: Mode
    transport: Transport

    @property
    def stateless(self) -> bool:
        """Whether it leads to the stateless revision."""
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
"""Those whose client can listen for changes without a session."""
RESUMING_WAYS = tuple(way for way in HANDSHAKE_WAYS if way.transport == "http")
"""Those whose client comes back when a connection breaks."""
SHARED_WAYS = tuple(way for way in WAYS if way.transport != "stdio")
"""Those that lead to one and the same server."""

by_every_way = pytest.mark.parametrize("peer", WAYS, ids=str, indirect=True)
by_handshake_ways = pytest.mark.parametrize("peer", HANDSHAKE_WAYS, ids=str, indirect=True)
by_stateless_ways = pytest.mark.parametrize("peer", STATELESS_WAYS, ids=str, indirect=True)
