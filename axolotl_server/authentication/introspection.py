"""Tokens that say nothing themselves: their issuer is asked about each of them (RFC 7662)."""

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

_MOST_REFUSED: Final = 1000
_REFUSED_SECONDS: Final = 5.0
_MOST_WAITING: Final = 200


class IntrospectionVerifier(ITokenVerifier):
    """Asks the issuer, once for all who bring the same token, and believes it only where it is clear."""

    def __init__(
        self,
        settings: AuthSettings,
        fetcher: HttpFetcher,
        *,
        max_waiting: int = _MOST_WAITING,
        max_refused: int = _MOST_REFUSED,
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
        self._asking: dict[bytes, asyncio.Task[Principal]] = {}
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        """Tokens that were refused lately: whoever sends nonsense again and again does not make us ask each time."""

    async def verify(self, token: str) -> Principal:
        """Ask about a token."""
        digest = sha256(token.encode("ascii")).digest()
        until, reason = self._refused.get(digest, (0.0, ""))
        if self._monotonic() < until:
            raise InvalidToken(reason)
        asking = self._asking.get(digest)
        if asking is None:
            if len(self._asking) >= self._max_waiting:
                raise Unavailable("too many tokens wait for an answer of the issuer")
            asking = self._asking[digest] = asyncio.get_running_loop().create_task(self._ask(token))
            asking.add_done_callback(lambda done: self._note(digest, done))
        return await asyncio.shield(asking)

    async def close(self) -> None:
        """Stop asking."""
        asking = tuple(self._asking.values())
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._fetcher.close()

    def _note(self, digest: bytes, done: asyncio.Task[Principal]) -> None:
        """Forget a question that was answered, and remember a refusal for a moment."""
        self._asking.pop(digest, None)
        error = None if done.cancelled() else done.exception()  # which whoever waits is told, if anyone still does
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
            raise InvalidToken("the token is of an issuer that is not accepted")
        self._claims.check_audience(answer)
        return self._claims.principal(answer, issuer)

    def _check_times(self, answer: Mapping[str, Any]) -> None:
        """Check the times again that the issuer should have checked."""
        now, times = self._now(), {}
        for name in ("exp", "nbf"):
            if (value := answer.get(name)) is not None:
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise InvalidToken(f"the {name} of the token is no time")
                times[name] = value
        if not now < times.get("exp", now + 1) + self._skew_seconds:
            raise InvalidToken("the token has expired")
        if not times.get("nbf", now) - self._skew_seconds <= now:
            raise InvalidToken("the token is not valid yet")


def _basic(settings: AuthSettings) -> str | None:
    """Write the credentials of this server."""
    name, secret = settings.introspection_client_id, settings.introspection_client_secret
    if name is None or secret is None:
        return None
    pair = f"{quote(name, safe='')}:{quote(secret.get_secret_value(), safe='')}"
    return f"Basic {b64encode(pair.encode('ascii')).decode('ascii')}"
