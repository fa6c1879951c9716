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
from axolotl_server.authentication.claims import ClaimReader
from axolotl_server.authentication.gate import CLOCK_SKEW_SECONDS
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


_ACCESS_TOKEN_TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
_PLAIN_TYPES: Final = frozenset({"jwt", "application/jwt"})
_OTHER_TOKEN_USES: Final = frozenset({"id", "refresh", "offline", "logout"})
"""Values of `typ` and `token_use` in the claims of tokens that are not access tokens, of Keycloak and Cognito."""
_ID_TOKEN_CLAIMS: Final = frozenset({"at_hash", "c_hash"})


def _check_type(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Check that a token is an access token, as far as it says so; raises InvalidToken if it is another kind.

    An access token has the type `at+jwt` (RFC 9068). Many issuers send `JWT` or nothing; then the claims must not be
    those of an ID token or a refresh token.
    """
    kind = header.get("typ")
    if isinstance(kind, str) and kind.lower() in _ACCESS_TOKEN_TYPES:
        return
    if kind is not None and not (isinstance(kind, str) and kind.lower() in _PLAIN_TYPES):
        raise InvalidToken("the type of the token is not that of an access token")
    uses = {str(claims.get(name)).lower() for name in ("typ", "token_use")}
    if not uses.isdisjoint(_OTHER_TOKEN_USES) or not _ID_TOKEN_CLAIMS.isdisjoint(claims):
        raise InvalidToken("the token is an ID token or a refresh token: send an access token")


class IKeys(Protocol):
    """Finds the keys of one issuer."""

    async def find(self, key_id: str | None, algorithm: str) -> PyJWK | bytes:
        """Return the key that a token names, for an accepted algorithm; raises InvalidToken if there is none."""
        ...

    async def ping(self) -> None:
        """Check that keys can be loaded; raises Unavailable if not."""
        ...

    async def close(self) -> None:
        """Release all resources."""
        ...


class SharedSecret:
    """The key of an issuer that shares a secret with this server."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    async def find(self, key_id: str | None, algorithm: str) -> bytes:
        return self._secret

    async def ping(self) -> None:
        """Do nothing: the secret is there."""

    async def close(self) -> None:
        pass


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
        _check_type(header, claims)
        self._claims.check_audience(claims)
        return self._claims.principal(claims, issuer)

    async def ping(self) -> None:
        """Check that the keys of all issuers can be loaded; raises Unavailable if not."""
        for keys in self._keys.values():
            await keys.ping()

    async def close(self) -> None:
        """Close all sources of keys."""
        for keys in self._keys.values():
            await keys.close()

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
