"""Limits on the JSON of a message: its depth, the number of its values, and one member per name."""

import json
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NoReturn

import msgspec

from axolotl_core.errors import InvalidRequest, ParseError
from axolotl_core.protocol.client_text import shorten

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_ALL_BYTES: Final = frozenset(range(256))
_NOT_STRUCTURE: Final = bytes(_ALL_BYTES - set(b'[]{},:"'))

_decode: Final = msgspec.json.Decoder(float_hook=msgspec.Raw).decode
_encode: Final = msgspec.json.Encoder().encode


def check_limits(data: bytes, max_values: int) -> None:
    """Check the depth and the number of values of a message without its texts, in linear time and little memory.

    Each element of an array and each array or object counts as a value. A member of an object counts as two: its name
    and its value.

    Raises:
        ParseError: if it is nested too deeply.
        InvalidRequest: if it has too many values.
    """
    # Without escaped quotes and backslashes, each quote begins or ends a text.
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    structure = unescaped.translate(None, _NOT_STRUCTURE)
    if len(structure) <= MAX_DEPTH:
        return
    structure = structure.replace(b'""', b"")
    if structure.count(b'"') > 2 * max_values:
        raise _too_many(max_values)
    structure = b"".join(structure.split(b'"')[::2])
    brackets = structure.translate(None, b",:")
    if len(structure) - len(brackets) // 2 > max_values:
        raise _too_many(max_values)
    if max(accumulate(array("b", brackets.translate(_STEPS))), default=0) > MAX_DEPTH:
        raise too_deep()


def too_deep() -> ParseError:
    """Make the error for a message that is nested too deeply."""
    return ParseError(f"Parse error: the message is nested more than {MAX_DEPTH} levels deep")


def has_duplicates(data: bytes) -> bool:
    """Whether an object in valid JSON has two members with the same name.

    Decoding keeps one of them, so the message becomes shorter when it is encoded again, and loses a colon. Whitespace
    and escapes make it shorter too; then the members are looked at.
    """
    try:
        encoded = _encode(_decode(data))
    except (msgspec.MsgspecError, ValueError):  # a number is too large
        return find_duplicate(data) is not None
    if len(encoded) == len(data) or (b"\\u" not in data and encoded.count(b":") == data.count(b":")):
        return False
    return find_duplicate(data) is not None


def duplicate_error(data: bytes) -> InvalidRequest:
    """Make the error for JSON with a duplicate member, with the name of that member."""
    name = find_duplicate(data) or ""
    return InvalidRequest(f'Invalid request: the member "{shorten(name)}" occurs more than once in the same object')


def find_duplicate(data: bytes) -> str | None:
    """Find the name of a duplicate member; None if there is none."""
    found: list[str] = []

    def check(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                found.append(name)
            names.add(name)
        return {}

    json.loads(data.decode(), object_pairs_hook=check, parse_int=len)
    return found[-1] if found else None


def read_leniently(data: bytes) -> Any:
    """Decode JSON that may contain half of a surrogate pair, which other decoders refuse.

    Raises:
        ValueError: if it is not JSON.
    """
    return json.loads(data.decode(), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _too_many(max_values: int) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid request: the message has more than {max_values} JSON values; send less data in one message"
    )
