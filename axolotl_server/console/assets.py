"""The files of the page, which are served as they lie here."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

__all__ = ["PAGE_HEADERS", "Asset", "load_assets"]

_TYPES: Final = {".html": b"text/html", ".css": b"text/css", ".js": b"text/javascript", ".svg": b"image/svg+xml"}
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "media-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
PAGE_HEADERS: Final[Sequence[tuple[bytes, bytes]]] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)
"""What every answer says: nothing runs but our own files, nothing frames them, nobody keeps them."""


class Asset(NamedTuple):
    """One file."""

    content_type: bytes
    content: bytes


def load_assets() -> Mapping[str, Asset]:
    """Read all files of the page, by name."""
    folder = files("axolotl_server.console") / "page"
    return {file.name: Asset(_type_of(file.name), file.read_bytes()) for file in folder.iterdir() if file.is_file()}


def _type_of(name: str) -> bytes:
    kind = _TYPES[name[name.rindex(".") :]]
    return kind if kind.startswith(b"image/") else kind + b"; charset=utf-8"
