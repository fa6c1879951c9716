"""JSON in one form: what differs only in whitespace or in the order of its keys becomes the same bytes."""

from typing import Any, Final

import msgspec

__all__ = ["canonical_json", "decode_exactly"]

decode_exactly: Final[Any] = msgspec.json.Decoder(float_hook=msgspec.Raw).decode
"""Decodes JSON; a number with a fraction or an exponent stays as it was written: as a float it could equal another."""
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def canonical_json(raw: bytes) -> bytes:
    """Write JSON with sorted keys and no whitespace; bytes that are no JSON stay as they are."""
    try:
        return _encode_sorted(decode_exactly(raw))
    except (ValueError, RecursionError):
        return raw
