"""The canonical form of a URI, and the key that all of its spellings share."""

import re
from typing import Final
from urllib.parse import quote

MAX_URI_CHARACTERS: Final = 2048

UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RESERVED: Final = frozenset(":/?#[]@!$&'()*+,;=")
FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\{}]|%(?![0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TRIPLET_OR_UNSAFE: Final = re.compile(r'%[0-9A-Fa-f]{2}|[^!-~]+|["<>^`|]')
_TRIPLET: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_HEX_PAIR: Final = re.compile(r"[0-9A-Fa-f]{2}")
_DELIMITER: Final = re.compile(r"[?#&;,]")
_PARAMETERS: Final = re.compile(r"[?#].*|;[^/?#]*")
_HOST: Final = re.compile(r"[^?#]*")


def canonical_uri(uri: str) -> str | None:
    """Return a URI in its canonical form; None if it is not valid or has more than 2048 characters in this form.

    The scheme is lowercase. Letters, digits, `-`, `.`, `_` and `~` are plain, everything else that must be encoded is
    encoded in uppercase. Two URIs with the same canonical form are the same URI (RFC 3986).
    """
    if len(uri) > MAX_URI_CHARACTERS or FORBIDDEN.search(uri):
        return None
    form = normalized(uri)
    return form if len(form) <= MAX_URI_CHARACTERS else None


def normalized(text: str) -> str:
    """Normalize the scheme and the percent-encoding of a URI, or of a part of it."""
    text = _TRIPLET_OR_UNSAFE.sub(_normalized_piece, text)
    scheme = _SCHEME.match(text)
    return text if scheme is None else scheme[0].lower() + text[scheme.end() :]


def uri_key(canonical: str) -> str:
    """Return the key of a canonical URI: the same for all URIs that some code could take for each other.

    Everything that may be plain is decoded, even if it is encoded several times. Backslashes are slashes. Empty and
    `.` segments are left out, `..` removes the segment before it, and the host is lowercase.
    """
    scheme, _, rest = _decoded(canonical).partition(":")
    segments: list[str] = []
    for segment in rest.split("/"):
        if segment == "..":
            segments[-1:] = []
        elif segment not in ("", "."):
            segments.append(segment)
    slashes = "//" if rest.startswith("//") else "/" if rest.startswith("/") else ""
    if segments and slashes == "//":
        segments[0] = _HOST.sub(lambda host: host[0].lower(), segments[0], count=1)
    return f"{scheme}:{slashes}{'/'.join(segments)}"


def bare_key(canonical: str) -> str:
    """Return the key of a canonical URI without query, fragment and path parameters, which some code ignores."""
    return uri_key(_PARAMETERS.sub("", _decoded(canonical)))


def has_dot_segments(canonical: str) -> bool:
    """Whether a URI contains a segment `.` or `..`, even an encoded one."""
    return not {".", ".."}.isdisjoint(_decoded(canonical).partition(":")[2].split("/"))


def is_plain(canonical: str, key: str) -> bool:
    """Whether a URI has one reading only: it equals its key and contains no character that separates parameters."""
    return canonical == key and _DELIMITER.search(key) is None


def _decoded(text: str) -> str:
    before = ""
    while text != before:
        text, before = _TRIPLET.sub(_decoded_piece, text), text
    return text


def _normalized_piece(found: re.Match[str]) -> str:
    piece = found[0]
    if not piece.startswith("%"):
        return quote(piece, safe="")
    character = chr(int(piece[1:], 16))
    return character if character in UNRESERVED else piece.upper()


def _decoded_piece(found: re.Match[str]) -> str:
    triplet = found[0]
    if triplet == "%25":
        return "%" if _HEX_PAIR.match(found.string, found.end()) else triplet
    character = chr(int(triplet[1:], 16))
    if character == "\\":
        return "/"
    return character if character in UNRESERVED or character in _RESERVED else triplet.upper()
