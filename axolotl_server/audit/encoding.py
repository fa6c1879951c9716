"""Records as bytes: one line of JSON, whatever stands in them."""

import re
from typing import Any, Final

import msgspec

from axolotl_core.audit import AuditRecord

__all__ = ["encode_note", "encode_record"]

_encode: Final = msgspec.json.Encoder().encode
_BREAKS: Final = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
"""What JSON leaves as it is and some readers of text take for the end of a line, or for a command."""


def encode_record(record: AuditRecord) -> bytes:
    """Write a record as a JSON object without line breaks of any kind."""
    try:
        encoded = _encode(record)
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 has no form for
        encoded = _encode(_without_surrogates(msgspec.structs.asdict(record)))
    return encoded if encoded.isascii() and b"\x7f" not in encoded else _BREAKS.sub(_escaped, encoded)


def encode_note(time: str, event: str, **details: Any) -> bytes:
    """Write what a log says of itself, in the same form."""
    return _BREAKS.sub(_escaped, _encode({"time": time, "event": event, **details}))


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _without_surrogates(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }
