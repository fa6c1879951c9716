"""Heads that clients repeat: found in a table instead of being parsed again."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

_END: Final = b"\r\n\r\n"
_MAX_HEADS: Final = 256
_MAX_HEAD_BYTES: Final = 2048


class _KnownHead(NamedTuple):
    headers: Mapping[bytes, bytes]
    credentials: slice
    """Where the credentials are; they are not kept."""
    length: int
    """The length of the body."""


class KnownHeads:
    """Heads of posted messages that the parser has accepted, with what it has read from them."""

    def __init__(self) -> None:
        self._heads: dict[bytes, _KnownHead] = {}
        """By the head, or by its digest if it has credentials."""

    def find(self, data: bytes) -> tuple[Mapping[bytes, bytes], bytes | None, bytes] | None:
        """Return the headers, credentials and body of a request, if the data is one whole request with a known head."""
        size = data.find(_END, 0, _MAX_HEAD_BYTES) + len(_END)
        head = data[:size]
        known = self._heads.get(head) or self._heads.get(_digest(head))
        if known is None or len(data) - size != known.length:
            return None
        return known.headers, data[known.credentials] or None, data[size:]

    def add(self, head: bytes, headers: Mapping[bytes, bytes], credentials: bytes | None, length: int) -> None:
        """Remember a head that was accepted; `headers` are without the credentials."""
        if len(head) > _MAX_HEAD_BYTES or head.find(_END) != len(head) - len(_END) or credentials == b"":
            return
        if len(self._heads) >= _MAX_HEADS:
            self._heads.clear()
        begin = head.find(credentials or b"")
        place = slice(begin, begin + len(credentials or b""))
        self._heads[head if credentials is None else _digest(head)] = _KnownHead(headers, place, length)


def _digest(head: bytes) -> bytes:
    return blake2b(head, digest_size=32).digest()
