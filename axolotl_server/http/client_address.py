"""The address of a client, also behind proxies that are trusted to report it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_network
from typing import Any, Final

from axolotl_server.protocol.fair_share import parse_address

_MAX_HOPS: Final = 20
_HOP: Final = re.compile(r"\[(?P<v6>[0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|(?P<v4>[0-9.]+)(?::[0-9]{1,5})?|[0-9A-Fa-f:.]+")
_FORWARDED_FOR: Final = re.compile(
    r'(?:^|;)[ \t]*for=(?:"(?P<quoted>[^"\\]*)"|(?P<token>[^";, \t]+))[ \t]*(?=;|$)', re.I
)


class ClientAddresses:
    """Finds the addresses of clients.

    A request from a trusted proxy has the address that the proxy reports. Reports are read from right to left, up to
    the first address that is not a trusted proxy: everything before it may have been written by the client.
    """

    def __init__(self, trusted_proxies: Iterable[str] = ()) -> None:
        networks = [ip_network(text) for text in trusted_proxies]
        self.trusts_any = bool(networks)
        """Whether headers may tell the address."""

        @lru_cache(1000)
        def is_trusted(address: str) -> bool:
            parsed = parse_address(address)
            return parsed is not None and any(parsed in network for network in networks)

        self.is_trusted = is_trusted

    def find(self, client: Sequence[Any] | None, headers: Mapping[bytes, bytes] | None) -> str | None:
        """Return the address of a client, None if it is unknown. `client` is the address and port of the connection."""
        if client is None:
            return None
        address = canonical_address(client[0])
        if not self.trusts_any or not headers or not self.is_trusted(address):
            return address
        found = {
            self._reported(address, hops(header.decode("latin-1")))
            for name, hops in _HEADERS.items()
            if (header := headers.get(name)) is not None
        }
        return found.pop() if len(found) == 1 else address  # a proxy sets one header: the other one is the client's

    def _reported(self, address: str, hops: Iterator[str | None]) -> str:
        """Follow the reports of proxies, beginning with the one at this address."""
        for _, hop in zip(range(_MAX_HOPS), hops, strict=False):
            if hop is None:
                return address
            address = hop
            if not self.is_trusted(address):
                return address
        return address


@lru_cache(1000)
def canonical_address(text: str) -> str:
    """Return the usual form of an address; other texts, such as the path of a socket, stay as they are."""
    parsed = parse_address(text)
    return text if parsed is None else str(parsed)


def _address_in(hop: str) -> str | None:
    """Return the address of a hop without its port; None if it has none."""
    match = _HOP.fullmatch(hop)
    parsed = None if match is None else parse_address(match["v6"] or match["v4"] or hop)
    return None if parsed is None else str(parsed)


def _forwarded_for(header: str) -> Iterator[str | None]:
    """Yield the addresses in an X-Forwarded-For header, the last one first."""
    for hop in reversed(header.split(",")):
        yield _address_in(hop.strip(" \t"))


def _forwarded(header: str) -> Iterator[str | None]:
    """Yield the addresses in a Forwarded header (RFC 7239), the last one first."""
    for element in reversed(header.split(",")):  # a comma in a quoted text makes both parts malformed
        matches = _FORWARDED_FOR.findall(element)
        yield _address_in("".join(matches[0])) if len(matches) == 1 else None


_HEADERS: Final = {b"x-forwarded-for": _forwarded_for, b"forwarded": _forwarded}
