"""The share of a limit that one principal may use."""

from collections.abc import Collection, Hashable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Protocol, TypeAlias

from axolotl_core.protocol.identity import ANONYMOUS, Principal

Share: TypeAlias = tuple[str | None, ...]
"""Whom something counts for: the identity of a principal, or the address of an anonymous caller."""

_ANONYMOUS: Final = ANONYMOUS.identity


def share_of(principal: Principal, address: str | None) -> Share | None:
    """Return whom a request over HTTP counts for; None if its caller may use everything.

    Anonymous callers are identified by address. Those on the same machine are not: they are the only user of a local
    server, or all users of a proxy.
    """
    if principal is not ANONYMOUS and (identity := principal.identity) != _ANONYMOUS:
        return identity
    return None if address is None else share_of_address(address)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address; None for other texts, such as the path of a socket. A mapped IPv4 address is one of IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


@lru_cache(1000)
def share_of_address(text: str) -> Share | None:
    """Return what an address counts for; None for addresses on the same machine, and for other texts."""
    address = parse_address(text)
    if address is None or address.is_loopback:
        return None
    if isinstance(address, IPv4Address):
        return (str(address),)
    return (address.packed[:8].hex(),)  # a network of this size belongs to one customer of a provider


class IShared(Protocol):
    """Something that counts for a principal."""

    @property
    def share(self) -> Hashable | None:
        """Whom it counts for; None if it is not limited."""


def is_used_up(share: Hashable | None, limit: int | None, *counted: Collection[IShared]) -> bool:
    """Whether one principal has as many things as it may have."""
    if limit is None or share is None or sum(map(len, counted)) < limit:
        return False
    return sum(one.share == share for ones in counted for one in ones) >= limit
