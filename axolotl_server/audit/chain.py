"""A chain of records: each carries the hash of the one before it, and its own over everything before that.

A link is one line, and what is hashed are its very bytes: there is no second form of a record to disagree about.

    {"seq":7,"prev":"<hash of 6>", ...the record... ,"hash":"<hash of all before this field>"}
"""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

Hash: TypeAlias = Callable[[bytes], str]
"""Gives the hash of some bytes in hexadecimal digits."""

_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))


class Hashing:
    """The hashes of one log: SHA-256, or HMAC-SHA-256 where there is a key, with a key of its own for each purpose."""

    def __init__(self, key: str | None) -> None:
        self.algorithm = "sha256" if key is None else "hmac-sha256"
        self.of_record: Hash = _plain if key is None else _keyed(_derived(key, b"chain"))
        """Links records."""
        self.of_arguments: Hash = _plain if key is None else _keyed(_derived(key, b"arguments"))
        """Names arguments: with a key, nobody who lacks it can try out what they may have been."""


def _plain(data: bytes) -> str:
    return sha256(data).hexdigest()


def _keyed(key: bytes) -> Hash:
    """Give HMAC-SHA-256; the states after the key are made once, which makes it three times as fast as `hmac`."""
    padded = key.ljust(_BLOCK_BYTES, b"\0")
    inner, outer = sha256(padded.translate(_INNER)), sha256(padded.translate(_OUTER))

    def hashed(data: bytes) -> str:
        first, second = inner.copy(), outer.copy()
        first.update(data)
        second.update(first.digest())
        return second.hexdigest()

    return hashed


def _derived(key: str, purpose: bytes) -> bytes:
    """Make a key of 32 bytes, so that it never exceeds a block."""
    return sha256(b"axolotl audit " + purpose + b"\0" + key.encode()).digest()


GENESIS: Final = b"0" * 64
"""What the first record has for the hash of the one before it."""

_LINK: Final = re.compile(
    rb'(\{"seq":([1-9][0-9]{0,17}),"prev":"([0-9a-f]{64})",.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL
)


class Link(NamedTuple):
    """A line of a chain, taken apart; whether its hash is right is another question."""

    hashed: bytes
    seq: int
    prev: bytes
    hash: bytes

    def is_sealed_by(self, hash_: Hash) -> bool:
        """Tell whether the line is as it was written."""
        return hash_(self.hashed).encode() == self.hash


class Chain:
    """The end of a chain, where the next record is linked."""

    def __init__(self, hash_: Hash, seq: int = 0, head: bytes = GENESIS) -> None:
        self._hash = hash_
        self.seq = seq
        """The number of the last record, 0 where there is none."""
        self.head = head
        """The hash of the last record."""

    def link(self, body: bytes) -> bytes:
        """Make a line of a record that is a JSON object and not an empty one."""
        seq = self.seq + 1
        hashed = b'{"seq":%d,"prev":"%b",%b' % (seq, self.head, body[1:-1])
        head = self._hash(hashed).encode()
        self.seq, self.head = seq, head
        return b'%b,"hash":"%b"}\n' % (hashed, head)

    def back_to(self, seq: int, head: bytes) -> None:
        """Forget links whose lines could not be kept."""
        self.seq, self.head = seq, head


def read_link(line: bytes) -> Link | None:
    """Take a line without its line break apart; None if it is no link."""
    match = _LINK.fullmatch(line)
    return None if match is None else Link(match[1], int(match[2]), match[3], match[4])
