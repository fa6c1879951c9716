"""Tokens that their issuer has signed."""

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
from axolotl_server.authentication.claims import ClaimReader
from axolotl_server.settings.authentication import AuthSettings

_REASONS: Final[tuple[tuple[type[PyJWTError], str], ...]] = (
    (ExpiredSignatureError, "the token has expired"),
    (ImmatureSignatureError, "the token is not valid yet"),
    (InvalidAlgorithmError, "the token is signed in a way that is not accepted"),
    (InvalidSignatureError, "the signature of the token is wrong"),
    (MissingRequiredClaimError, "the token lacks exp, iss or aud"),
    (PyJWTError, "the token is no valid JWT"),
)
"""What a sender is told: in words of ours, since those of the library may repeat the token."""


class IKeys(Protocol):
    """Knows the keys of one issuer."""

    async def find(self, name: str | None, algorithm: str) -> PyJWK | bytes:
        """Give the key that a token names, for an algorithm that is accepted.

        Raises:
            InvalidToken: if there is no such key.
        """
        ...

    async def close(self) -> None:
        """Let go of what finding keys needs."""
        ...


class SharedSecret:
    """The one key of an issuer that shares a secret with this server."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    async def find(self, name: str | None, algorithm: str) -> bytes:
        """Give the secret, whatever the token calls it."""
        return self._secret

    async def close(self) -> None:
        """Do nothing."""


class JwtVerifier(ITokenVerifier):
    """Verifies signature, issuer, audience and times; nothing in a token says where its key is."""

    def __init__(self, settings: AuthSettings, keys: Mapping[str, IKeys]) -> None:
        """Say whose keys count, by issuer."""
        self._keys = keys
        self._claims = ClaimReader(settings)
        self._algorithms = settings.signing_algorithms
        self._skew_seconds = settings.clock_skew_seconds
        self._jwt = PyJWT(
            {
                "require": ["exp", "iss", "aud"],
                "verify_aud": False,  # the claim reader knows in how many ways an address is written
                "enforce_minimum_key_length": True,
            }
        )

    async def verify(self, token: str) -> Principal:
        """Verify a token."""
        try:
            issuer, name, algorithm = self._origin(token)
            key = await self._keys[issuer].find(name, algorithm)
            claims = self._jwt.decode(token, key, algorithms=[algorithm], issuer=issuer, leeway=self._skew_seconds)
        except PyJWTError as error:
            reason = next(text for kind, text in _REASONS if isinstance(error, kind))
            raise InvalidToken(reason) from None
        self._claims.check_audience(claims)
        return self._claims.principal(claims, issuer)

    async def close(self) -> None:
        """Let go of all keys."""
        for keys in self._keys.values():
            await keys.close()

    def _origin(self, token: str) -> tuple[str, str | None, str]:
        """Read what is needed to choose a key: the issuer, the name of the key and the algorithm, none of them proven.

        Raises:
            InvalidToken: if one of them is not accepted.
        """
        header = get_unverified_header(token)
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in self._algorithms:
            raise InvalidToken("the token is signed in a way that is not accepted")
        claims: dict[str, Any] = self._jwt.decode(token, options={"verify_signature": False})
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._keys:
            raise InvalidToken("the token is of an issuer that is not accepted")
        return issuer, name, algorithm
