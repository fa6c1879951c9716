"""The hash chain of an audit log: each record carries the hash of the previous one, and its own.

A link is one line, and its own bytes are hashed, so there is no second form of a record:

    {"seq":7,"prev":"<hash of 6>", ...the record... ,"hash":"<hash of all before this field>"}
"""

import hmac
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

import msgspec

Hash: TypeAlias = Callable[[bytes], str]
"""Returns the hash of some bytes in hexadecimal digits."""

_encode: Final = msgspec.json.Encoder().encode


class Hashing:
    """The hashes of one log: SHA-256, or HMAC-SHA-256 with a key derived for each purpose."""

    def __init__(self, key: str | None) -> None:
        self.algorithm = "sha256" if key is None else "hmac-sha256"
        self.of_record: Hash = _plain if key is None else _keyed(_derived(key, b"chain"))
        """Links records."""
        self.of_arguments: Hash = _plain if key is None else _keyed(_derived(key, b"arguments"))
        """Identifies arguments; without the key, nobody can find them by trying values."""


def _plain(data: bytes) -> str:
    return sha256(data).hexdigest()


def _keyed(key: bytes) -> Hash:
    """Make an HMAC-SHA-256 function; the state after the key is computed once."""
    keyed = hmac.new(key, digestmod="sha256")

    def hash_(data: bytes) -> str:
        of_data = keyed.copy()
        of_data.update(data)
        return of_data.hexdigest()

    return hash_


def _derived(key: str, purpose: bytes) -> bytes:
    """Derive a key of 32 bytes."""
    return sha256(b"axolotl audit " + purpose + b"\0" + key.encode()).digest()


GENESIS: Final = b"0" * 64
"""The `prev` of the first record."""
RECORD_START: Final = b'{"seq":'
"""The first bytes of every line."""

_LINK: Final = re.compile(
    rb'(\{"seq":([1-9][0-9]{0,17}),"prev":"([0-9a-f]{64})",.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL
)


class Link(NamedTuple):
    """A parsed line of a chain; its hash may be wrong."""

    hashed: bytes
    seq: int
    prev: bytes
    hash: bytes

    def has_valid_hash(self, hash_: Hash) -> bool:
        """Tell whether the line is unchanged."""
        return hash_(self.hashed).encode() == self.hash


class Chain:
    """The end of a chain, to which the next record is linked."""

    def __init__(self, hash_: Hash, seq: int = 0, head: bytes = GENESIS) -> None:
        self._hash = hash_
        self.seq = seq
        """The number of the last record; 0 if there is none."""
        self.head = head
        """The hash of the last record."""

    def link(self, body: bytes) -> bytes:
        """Make the line of a record, which is a JSON object with at least one member."""
        seq = self.seq = self.seq + 1
        hashed = b"".join((b'{"seq":', _encode(seq), b',"prev":"', self.head, b'",', body[1:-1]))
        head = self.head = self._hash(hashed).encode()
        return b"".join((hashed, b',"hash":"', head, b'"}\n'))

    def reset(self, seq: int, head: bytes) -> None:
        """Set the end of the chain, for example after a line could not be written."""
        self.seq, self.head = seq, head


def read_link(line: bytes) -> Link | None:
    """Parse a line without its line break; None if it is not a link."""
    match = _LINK.fullmatch(line)
    return None if match is None else Link(match[1], int(match[2]), match[3], match[4])
