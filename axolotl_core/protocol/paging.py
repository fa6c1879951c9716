"""Opaque list cursors: a position that any instance of the server can read."""

import base64
import binascii

from axolotl_core.errors import InvalidParams

__all__ = ["decode_cursor", "encode_cursor"]


def encode_cursor(kind: str, position: int) -> str:
    """Name the place in the list of `kind` after its entry number `position`."""
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str) -> int:
    """Read a cursor made for the list of `kind`.

    Raises:
        InvalidParams: if the cursor is not one that `encode_cursor` made for this list.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        position = int(text.removeprefix(f"{kind}:"))
    except (binascii.Error, ValueError):
        position = -1
    if position < 0 or encode_cursor(kind, position) != cursor:
        raise InvalidParams(f"Invalid cursor for {kind}/list: ask again without a cursor to start from the first page")
    return position
