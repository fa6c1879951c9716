"""Verification of signed tokens (JWT)."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from jwt import PyJWK, PyJWT, PyJWTError, get_unverified_header
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAlgorithmError,
    InvalidSignatureError,
    MissingRequiredClaimError,
)

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.access.claims import ClaimReader
from axolotl_server.access.gate import CLOCK_SKEW_SECONDS
from axolotl_server.settings.authentication import AuthSettings

_REASONS: Final[tuple[tuple[type[PyJWTError], str], ...]] = (
    (ExpiredSignatureError, "the token has expired"),
    (ImmatureSignatureError, "the token is not valid yet"),
    (InvalidAlgorithmError, "the algorithm of the token's signature is not accepted"),
    (InvalidSignatureError, "the signature of the token is wrong"),
    (MissingRequiredClaimError, "the token lacks exp, iss or aud"),
    (PyJWTError, "the token is not a valid JWT"),
)
"""Texts of our own for clients, because the library's may contain the token."""


class IKeys(Protocol):
    """Finds the keys of one issuer."""

    async def find(self, key_id: str | None, algorithm: str) -> PyJWK | bytes:
        """Return the key that a token names, for an accepted algorithm; raises InvalidToken if there is none."""
        ...


class SharedSecret:
    """The key of an issuer that shares a secret with this server."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    async def find(self, key_id: str | None, algorithm: str) -> bytes:
        return self._secret


class JwtVerifier(ITokenVerifier):
    """Verifies signature, issuer, audience and lifetime; where a key is found never depends on the token."""

    def __init__(self, settings: AuthSettings, keys: Mapping[str, IKeys]) -> None:
        """Take the settings, and the keys by issuer."""
        self._keys = keys
        self._claims = ClaimReader(settings)
        self._algorithms = settings.signing_algorithms
        self._skew_seconds = CLOCK_SKEW_SECONDS
        self._jwt = PyJWT(
            {
                "require": ["exp", "iss", "aud"],
                "verify_aud": False,  # the claim reader compares URLs in canonical form
                "enforce_minimum_key_length": True,
            }
        )

    async def verify(self, token: str) -> Principal:
        try:
            header = get_unverified_header(token)
            issuer, key_id, algorithm = self._read_unverified(token, header)
            key = await self._keys[issuer].find(key_id, algorithm)
            claims = self._jwt.decode(token, key, algorithms=[algorithm], issuer=issuer, leeway=self._skew_seconds)
        except PyJWTError as error:
            reason = next(text for kind, text in _REASONS if isinstance(error, kind))
            raise InvalidToken(reason) from None
        return self._claims.accept(claims, issuer, header.get("typ"))

    def _read_unverified(self, token: str, header: Mapping[str, Any]) -> tuple[str, str | None, str]:
        """Read the issuer, the key ID and the algorithm, which choose a key; none of them is proven yet."""
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._algorithms:
            raise InvalidToken("the algorithm of the token's signature is not accepted")
        claims: dict[str, Any] = self._jwt.decode(token, options={"verify_signature": False})
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._keys:
            raise InvalidToken("the issuer of the token is not accepted")
        return issuer, key_id, algorithm
