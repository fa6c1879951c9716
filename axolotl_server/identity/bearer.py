"""The token in an Authorization header."""

import re
from typing import Final

__all__ = ["MalformedCredentials", "bearer_token"]

_BEARER: Final = re.compile(rb"bearer(?: +(?P<token>[A-Za-z0-9._~+/-]+=*)?)?", re.IGNORECASE)
_SCHEME: Final = re.compile(rb"(?P<scheme>[!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: .*)?", re.DOTALL)


class MalformedCredentials(Exception):
    """The header is no credentials at all, or holds more than one token."""


def bearer_token(header: bytes) -> str | None:
    """Take the token out of the header; None where it is of another scheme, or holds no token.

    Raises:
        MalformedCredentials: if it cannot be read in one way only.
    """
    bearer = _BEARER.fullmatch(header)
    if bearer is not None:
        token: bytes | None = bearer["token"]
        return None if token is None else token.decode("ascii")
    scheme = _SCHEME.fullmatch(header)
    if scheme is None or scheme["scheme"].lower() == b"bearer":
        raise MalformedCredentials
    return None
