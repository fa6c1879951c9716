"""Verification of opaque tokens by token introspection (RFC 7662)."""

import asyncio
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import msgspec

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.access.claims import ClaimReader
from axolotl_server.access.fetcher import HttpFetcher, Unavailable
from axolotl_server.access.gate import CLOCK_SKEW_SECONDS, token_sender
from axolotl_server.settings.authentication import AuthSettings

_MAX_REFUSED: Final = 1000
_REFUSED_SECONDS: Final = 5.0
_MAX_WAITING: Final = 1000
_MAX_TIME: Final = 2**53
"""The largest time of a token, in seconds; larger numbers cannot be added to others."""
MAX_RUNNING: Final = 20
_MAX_SHARE: Final = 0.75
"""The share of the running queries that one sender may have, so that there is room for others at once."""


class _Query(msgspec.Struct, eq=False):
    """A question to the issuer about one token, and the number of requests that wait for the answer."""

    token: str
    digest: bytes
    sender: str
    answer: asyncio.Future[Principal]
    requests: int = 0


class _FairQueue:
    """Queries that wait, by sender: each sender in turn, and of one sender the newest first.

    The oldest ones of a sender are closest to their timeout, so they are dropped first if too many wait.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._by_sender: dict[str, dict[bytes, _Query]] = {}
        self._length = 0

    def put(self, query: _Query) -> _Query | None:
        """Add a query; returns the one that is dropped in its place, of the sender with the most."""
        self._by_sender.setdefault(query.sender, {})[query.digest] = query
        self._length += 1
        if self._length <= self._maximum:
            return None
        longest = max(self._by_sender.values(), key=len)
        oldest = next(iter(longest.values()))
        self.remove(oldest)
        return oldest

    def take(self, may_run: Callable[[str], bool]) -> _Query | None:
        """Take the next query of a sender that may run one; this sender is the last one to have another turn."""
        sender = next(filter(may_run, self._by_sender), None)
        if sender is None:
            return None
        queries = self._by_sender.pop(sender)
        _, query = queries.popitem()
        self._length -= 1
        if queries:
            self._by_sender[sender] = queries
        return query

    def remove(self, query: _Query) -> bool:
        """Remove a query; returns False if it does not wait."""
        queries = self._by_sender.get(query.sender, {})
        if queries.pop(query.digest, None) is None:
            return False
        self._length -= 1
        if not queries:
            del self._by_sender[query.sender]
        return True


class IntrospectionVerifier(ITokenVerifier):
    """Asks the issuer about tokens, once for all requests with the same token that wait at the same time.

    Many unknown tokens of one sender do not delay the tokens of others.
    """

    def __init__(
        self,
        settings: AuthSettings,
        fetcher: HttpFetcher,
        *,
        max_waiting: int = _MAX_WAITING,
        max_running: int = MAX_RUNNING,
        max_refused: int = _MAX_REFUSED,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        assert settings.introspection_url is not None
        self._url = settings.introspection_url
        self._authorization = _basic(settings)
        self._issuers = settings.issuers
        self._claims = ClaimReader(settings)
        self._fetcher = fetcher
        self._max_running = max_running
        self._max_refused = max_refused
        self._now = now
        self._monotonic = monotonic
        self._queries: dict[bytes, _Query] = {}
        self._queue = _FairQueue(max_waiting)
        self._running: dict[asyncio.Task[None], str] = {}
        """The queries that the issuer is asked about, with their senders."""
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        """When recent refusals expire, and their reasons: repeated invalid tokens do not cause more queries."""

    async def verify(self, token: str) -> Principal:
        digest = sha256(token.encode("ascii")).digest()
        until, reason = self._refused.get(digest, (0.0, ""))
        if self._monotonic() < until:
            raise InvalidToken(reason)
        query = self._queries.get(digest) or self._start(token, digest)
        query.requests += 1
        try:
            return await asyncio.shield(query.answer)
        finally:
            query.requests -= 1
            if not query.requests and self._queue.remove(query):
                self._queries.pop(digest, None)

    async def close(self) -> None:
        """Cancel all queries and close all connections."""
        while (waiting := self._queue.take(lambda sender: True)) is not None:
            waiting.answer.cancel()
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._queries.clear()
        await self._fetcher.close()

    def _start(self, token: str, digest: bytes) -> _Query:
        answer: asyncio.Future[Principal] = asyncio.get_running_loop().create_future()
        query = self._queries[digest] = _Query(token, digest, token_sender.get(), answer)
        dropped = self._queue.put(query)
        if dropped is not None:
            self._end(dropped, Unavailable("too many tokens are waiting for the issuer's answer"))
        self._run_next()
        return query

    def _run_next(self) -> None:
        while len(self._running) < self._max_running and (query := self._queue.take(self._may_run)) is not None:
            task = asyncio.get_running_loop().create_task(self._run(query))
            self._running[task] = query.sender
            task.add_done_callback(self._ended)

    def _may_run(self, sender: str) -> bool:
        return [*self._running.values()].count(sender) < max(1, self._max_running * _MAX_SHARE)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled():
            self._run_next()

    async def _run(self, query: _Query) -> None:
        try:
            self._end(query, await self._ask(query.token))
        except asyncio.CancelledError:
            query.answer.cancel()
            raise
        except Exception as error:
            self._end(query, error)

    def _end(self, query: _Query, found: Principal | Exception) -> None:
        """Answer all requests with a token, and remember it if it is invalid."""
        self._queries.pop(query.digest, None)
        if isinstance(found, InvalidToken):
            self._refused[query.digest] = self._monotonic() + _REFUSED_SECONDS, found.reason
            self._refused.move_to_end(query.digest)
            if len(self._refused) > self._max_refused:
                self._refused.popitem(last=False)
        if query.answer.done() or not query.requests:
            return
        if isinstance(found, Exception):
            query.answer.set_exception(found)
        else:
            query.answer.set_result(found)

    async def _ask(self, token: str) -> Principal:
        form = {"token": token, "token_type_hint": "access_token"}
        answer = await self._fetcher.post(self._url, form, self._authorization)
        if answer.get("active") is not True:
            raise InvalidToken("the issuer does not know the token, or no longer accepts it")
        self._check_times(answer)
        issuer = answer.get("iss", self._url)
        if not isinstance(issuer, str) or ("iss" in answer and self._issuers and issuer not in self._issuers):
            raise InvalidToken("the issuer of the token is not accepted")
        return self._claims.accept(answer, issuer)

    def _check_times(self, answer: Mapping[str, Any]) -> None:
        """Check the lifetime again, which the issuer should have done."""
        now, times = self._now(), {}
        for name in ("exp", "nbf"):
            if (value := answer.get(name)) is not None:
                if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > _MAX_TIME:
                    raise InvalidToken(f"the {name} of the token is not a time")
                times[name] = value
        if not now < times.get("exp", now + 1) + CLOCK_SKEW_SECONDS:
            raise InvalidToken("the token has expired")
        if not times.get("nbf", now) - CLOCK_SKEW_SECONDS <= now:
            raise InvalidToken("the token is not valid yet")


def _basic(settings: AuthSettings) -> str | None:
    name, secret = settings.introspection_client_id, settings.introspection_client_secret
    if name is None or secret is None:
        return None
    pair = f"{quote(name, safe='')}:{quote(secret.get_secret_value(), safe='')}"
    return f"Basic {b64encode(pair.encode('ascii')).decode('ascii')}"
