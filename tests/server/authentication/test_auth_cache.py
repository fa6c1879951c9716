"""The token cache: bounded in size and time."""

from math import inf
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from axolotl_core import Principal
from axolotl_core.policies.access import ITokenVerifier
from axolotl_server.access.gate import BearerGate, Challenges, TokenCache
from tests.support.authorization_server import authority
from tests.support.servers.authenticated_server import bearer, discover, gated

MAXIMUM, SECONDS, SKEW = 3, 100.0, 10.0
DIGESTS = st.binary(min_size=1, max_size=1)
TIMES = st.none() | st.integers(0, 500)


class CacheMachine(RuleBasedStateMachine):
    """Random puts and gets, while both clocks advance and one of them is also set back."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.monotonic = 200.0, 0.0
        self.cache = TokenCache(MAXIMUM, SECONDS, SKEW, now=lambda: self.now, monotonic=lambda: self.monotonic)
        self.put_last: dict[bytes, tuple[Principal, float]] = {}

    @rule(digest=DIGESTS, begins=TIMES, ends=TIMES)
    def put(self, digest: bytes, begins: int | None, ends: int | None) -> None:
        claims = {name: value for name, value in (("nbf", begins), ("exp", ends)) if value is not None}
        principal = Principal(repr(digest), claims=claims)
        self.cache.put(digest, principal)
        self.put_last[digest] = principal, self.monotonic

    @rule(seconds=st.floats(0, 60))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.monotonic += seconds

    @rule(seconds=st.floats(-300, 300))
    def set_clock(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.put_last)
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        digest = data.draw(st.sampled_from(sorted(self.put_last)))
        found = self.cache.get(digest)
        principal, since = self.put_last[digest]
        in_time = principal.claims.get("nbf", -inf) - SKEW <= self.now < principal.claims.get("exp", inf) + SKEW
        if found is None:
            return
        assert found is principal
        assert in_time
        assert self.monotonic < since + SECONDS

    @invariant()
    def is_bounded(self) -> None:
        assert len(self.cache) <= MAXIMUM


TestCache = CacheMachine.TestCase


def test_the_least_used_goes_first() -> None:
    """The least recently used entry is removed first."""
    cache = TokenCache(2, SECONDS, 0)
    one, two, three = (Principal(name) for name in ("one", "two", "three"))
    cache.put(b"1", one)
    cache.put(b"2", two)
    assert cache.get(b"1") is one
    cache.put(b"3", three)
    assert [cache.get(key) for key in (b"1", b"2", b"3")] == [one, None, three]


def test_a_cache_without_size_or_lifetime_stores_nothing() -> None:
    """A cache without size or lifetime stores nothing."""
    for cache in (TokenCache(0, SECONDS, 0), TokenCache(5, 0, 0)):
        cache.put(b"1", Principal("one"))
        assert (cache.get(b"1"), len(cache)) == (None, 0)


def test_invalid_times_are_not_cached() -> None:
    """A principal with invalid times is not cached."""
    unreadable: list[dict[str, Any]] = [{"exp": "soon"}, {"exp": None, "nbf": []}, {"exp": inf}, {"nbf": "x"}]
    for claims in unreadable:
        cache = TokenCache(5, SECONDS, 0)
        cache.put(b"1", Principal("one", claims=claims))
        assert cache.get(b"1") is None


async def test_many_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """More users than cache entries are all accepted, each as itself."""
    monkeypatch.setattr("axolotl_server.access.verifiers.MAX_CACHED_TOKENS", 2)
    async with authority() as issuer, gated(issuer.settings()) as server:
        tokens = [issuer.token(sub=f"user-{number}") for number in range(5)]
        for token in (*tokens, *tokens):
            assert (await discover(server, bearer(token))).status == 200


async def test_one_entry_per_token() -> None:
    """Spaces and the case of the scheme do not make another token: it is cached and verified once."""
    verified: list[str] = []

    class Counting(ITokenVerifier):
        async def verify(self, token: str) -> Principal:
            verified.append(token)
            return Principal("ada")

    cache = TokenCache(MAXIMUM, SECONDS, SKEW)
    gate = BearerGate(Counting(), cache, Challenges(None, ()), timeout_seconds=5)
    spellings = [b"Bearer" + b" " * spaces + b"abc" for spaces in range(1, 20)] + [b"bearer abc", b"BEARER  abc"]
    for credentials in (spellings[3], *spellings, *reversed(spellings)):
        assert (await gate.admit(credentials, None, {})).subject == "ada"
    assert (verified, len(cache)) == (["abc"], 1)
