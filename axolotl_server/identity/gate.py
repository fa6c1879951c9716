"""The gate in front of the endpoint: whoever comes without a good token is told how to get one."""

import logging
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from axolotl_core.errors import InvalidToken
from axolotl_core.protocol.identity import Principal
from axolotl_core.token_verifier import ITokenVerifier
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.identity.bearer import MalformedCredentials, bearer_token
from axolotl_server.identity.challenges import Challenges
from axolotl_server.identity.token_cache import TokenCache
from axolotl_server.identity.unavailable import Unavailable
from axolotl_server.throttle import TokenBucket

__all__ = ["BearerGate"]

_LINES_PER_SECOND: Final = 10.0

_log = logging.getLogger("axolotl")


class BearerGate:
    """Admits requests with a token that is accepted; one that was accepted lately is known by its digest."""

    def __init__(
        self,
        verifier: ITokenVerifier,
        cache: TokenCache,
        challenges: Challenges,
        *,
        required_scopes: Iterable[str] = (),
        max_bytes: int,
    ) -> None:
        self._verifier = verifier
        self._cache = cache
        self._challenges = challenges
        self._required_scopes = frozenset(required_scopes)
        self._max_bytes = max_bytes
        self._lines = TokenBucket(_LINES_PER_SECOND)

    async def admit(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Give the principal of a request.

        Raises:
            HttpRefusal: with a challenge; 503 if nobody can tell now.
        """
        credentials = headers.get(b"authorization")
        if credentials is None:
            raise self._challenges.no_token()
        if len(credentials) > self._max_bytes:
            raise self._challenges.invalid_token("the token is too long")
        digest = sha256(credentials).digest()
        return self._cache.get(digest) or await self._verify(credentials, digest)

    def demand(self, scopes: Iterable[str]) -> HttpRefusal:
        """Say which scopes a request needs that its token does not have."""
        return self._challenges.insufficient_scope(scopes)

    async def _verify(self, credentials: bytes, digest: bytes) -> Principal:
        try:
            token = bearer_token(credentials)
            if token is None:
                raise self._challenges.no_token()
            principal = await self._verifier.verify(token)
        except MalformedCredentials:
            raise self._challenges.malformed() from None
        except InvalidToken as error:
            if self._lines.take():
                _log.info("a request was refused: %s", error.reason)
            raise self._challenges.invalid_token(error.reason) from None
        except Unavailable:
            raise self._challenges.unavailable() from None
        if not self._required_scopes.issubset(principal.scopes):
            raise self._challenges.insufficient_scope()
        self._cache.put(digest, principal)
        return principal
