"""Verification of opaque tokens by token introspection (RFC 7662)."""

import asyncio
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.authentication.claims import ClaimReader
from axolotl_server.authentication.fetcher import HttpFetcher, Unavailable
from axolotl_server.settings.authentication import AuthSettings

_MAX_REFUSED: Final = 1000
_REFUSED_SECONDS: Final = 5.0
_MAX_WAITING: Final = 200


class IntrospectionVerifier(ITokenVerifier):
    """Asks the issuer about tokens, once for all requests with the same token that wait at the same time."""

    def __init__(
        self,
        settings: AuthSettings,
        fetcher: HttpFetcher,
        *,
        max_waiting: int = _MAX_WAITING,
        max_refused: int = _MAX_REFUSED,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        assert settings.introspection_url is not None
        self._url = settings.introspection_url
        self._authorization = _basic(settings)
        self._issuers = settings.issuers
        self._skew_seconds = settings.clock_skew_seconds
        self._claims = ClaimReader(settings)
        self._fetcher = fetcher
        self._max_waiting = max_waiting
        self._max_refused = max_refused
        self._now = now
        self._monotonic = monotonic
        self._queries: dict[bytes, asyncio.Task[Principal]] = {}
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        """When recent refusals expire, and their reasons: repeated invalid tokens do not cause more queries."""

    async def verify(self, token: str) -> Principal:
        digest = sha256(token.encode("ascii")).digest()
        until, reason = self._refused.get(digest, (0.0, ""))
        if self._monotonic() < until:
            raise InvalidToken(reason)
        query = self._queries.get(digest)
        if query is None:
            if len(self._queries) >= self._max_waiting:
                raise Unavailable("too many tokens are waiting for the issuer's answer")
            query = self._queries[digest] = asyncio.get_running_loop().create_task(self._ask(token))
            query.add_done_callback(lambda done: self._end(digest, done))
        return await asyncio.shield(query)

    async def close(self) -> None:
        """Cancel all queries and close all connections."""
        queries = tuple(self._queries.values())
        for query in queries:
            query.cancel()
        await asyncio.gather(*queries, return_exceptions=True)
        await self._fetcher.close()

    def _end(self, digest: bytes, done: asyncio.Task[Principal]) -> None:
        self._queries.pop(digest, None)
        error = None if done.cancelled() else done.exception()  # raised in the requests that wait, if any
        if isinstance(error, InvalidToken):
            self._refused[digest] = self._monotonic() + _REFUSED_SECONDS, error.reason
            self._refused.move_to_end(digest)
            if len(self._refused) > self._max_refused:
                self._refused.popitem(last=False)

    async def _ask(self, token: str) -> Principal:
        form = {"token": token, "token_type_hint": "access_token"}
        answer = await self._fetcher.post(self._url, form, self._authorization)
        if answer.get("active") is not True:
            raise InvalidToken("the issuer does not know the token, or no longer accepts it")
        self._check_times(answer)
        issuer = answer.get("iss", self._url)
        if not isinstance(issuer, str) or ("iss" in answer and self._issuers and issuer not in self._issuers):
            raise InvalidToken("the issuer of the token is not accepted")
        self._claims.check_audience(answer)
        return self._claims.principal(answer, issuer)

    def _check_times(self, answer: Mapping[str, Any]) -> None:
        """Check the lifetime again, which the issuer should have done."""
        now, times = self._now(), {}
        for name in ("exp", "nbf"):
            if (value := answer.get(name)) is not None:
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise InvalidToken(f"the {name} of the token is not a time")
                times[name] = value
        if not now < times.get("exp", now + 1) + self._skew_seconds:
            raise InvalidToken("the token has expired")
        if not times.get("nbf", now) - self._skew_seconds <= now:
            raise InvalidToken("the token is not valid yet")


def _basic(settings: AuthSettings) -> str | None:
    name, secret = settings.introspection_client_id, settings.introspection_client_secret
    if name is None or secret is None:
        return None
    pair = f"{quote(name, safe='')}:{quote(secret.get_secret_value(), safe='')}"
    return f"Basic {b64encode(pair.encode('ascii')).decode('ascii')}"
