"""The public keys of issuers: fetching, caching, rotation and outages."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from axolotl_core.errors import ConfigurationError, InvalidToken
from axolotl_server.access.fetcher import HttpFetcher, Unavailable
from axolotl_server.access.jwt_verifier import KeySet, discover_keys
from tests.support.authorization_server import RESOURCE, Authority, SigningKey, authority
from tests.support.servers.authenticated_server import bearer, discover, gated, principal_of
from tests.support.servers.serving import HttpServer, until

SECOND = SigningKey("second")
THIRD = SigningKey("third")
HOUR = 3600.0


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


async def statuses(server: HttpServer, *tokens: str) -> list[int]:
    replies = await asyncio.gather(*(discover(server, bearer(token)) for token in tokens))
    return [reply.status for reply in replies]


async def test_keys_are_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Concurrent first requests fetch the keys once."""
    monkeypatch.setattr("axolotl_server.access.verifiers.MAX_CACHED_TOKENS", 0)
    async with authority() as issuer, gated(issuer.settings()) as server:
        issuer.open.clear()
        waiting = asyncio.ensure_future(statuses(server, *(issuer.token(sub=f"user-{one}") for one in range(20))))
        await until(lambda: issuer.asked)
        issuer.open.set()
        assert await waiting == [200] * 20
        assert await statuses(server, issuer.token()) == [200]
        assert issuer.count("/jwks") == 1


async def test_rotation() -> None:
    """A token with a new key triggers a refresh, and a removed key is no longer accepted."""
    async with authority() as issuer:
        auth = issuer.settings(token_cache_seconds=0, jwks_refresh_seconds=1e-6)
        async with gated(auth) as server:
            old, new = issuer.token(), SECOND.sign(issuer.claims())
            assert await statuses(server, old) == [200]
            assert await statuses(server, new) == [401]
            issuer.publish(issuer.key, SECOND)
            assert await statuses(server, new) == [200]
            issuer.publish(SECOND)
            assert await statuses(server, THIRD.sign(issuer.claims())) == [401]
            assert await statuses(server, old, new) == [401, 200]


async def test_unknown_keys_are_looked_for_rarely() -> None:
    """Tokens with unknown keys do not cause repeated refreshes."""
    async with authority() as issuer, gated(issuer.settings(jwks_refresh_seconds=600)) as server:
        assert await statuses(server, issuer.token()) == [200]
        forged = [THIRD.sign(issuer.claims(), kid=f"invented-{number}") for number in range(30)]
        assert await statuses(server, *forged) == [401] * 30
        assert issuer.count("/jwks") == 1


class TestKeySet:
    """The key set with a manual clock."""

    async def test_refresh_is_paced(self) -> None:
        """Refreshes have a minimum interval, and waiting requests share one."""
        clock = Clock()
        async with authority() as issuer, keys_of(issuer, clock) as keys:
            await keys.find("first", "ES256")
            for expected in (1, 2, 3):
                with pytest.raises(InvalidToken):
                    await keys.find("second", "ES256")
                assert issuer.count("/jwks") == expected
                with pytest.raises(InvalidToken):
                    await keys.find("second", "ES256")
                assert issuer.count("/jwks") == expected
                clock.time += 30

    async def test_old_keys_are_replaced(self) -> None:
        """Old keys are used while new ones are fetched."""
        clock = Clock()
        async with authority() as issuer, keys_of(issuer, clock) as keys:
            await keys.find("first", "ES256")
            issuer.publish(SECOND)
            clock.time += HOUR
            await keys.find("first", "ES256")
            await until(lambda: issuer.count("/jwks") == 2 and keys._loading is None)
            await keys.find("second", "ES256")
            with pytest.raises(InvalidToken):
                await keys.find("first", "ES256")

    async def test_an_unreachable_issuer(self) -> None:
        """During an outage of the issuer, its keys are used for a limited time."""
        clock = Clock()
        async with authority() as issuer, keys_of(issuer, clock) as keys:
            await keys.find("first", "ES256")
            issuer.say("/jwks", {}, status=500)
            for hours in (1, 12, 11.9):
                clock.time += hours * HOUR
                await keys.find("first", "ES256")
                await until(lambda: keys._loading is None)
            clock.time += HOUR
            with pytest.raises(Unavailable):
                await keys.find("first", "ES256")
            issuer.publish(issuer.key)
            clock.time += 1
            await keys.find("first", "ES256")

    async def test_a_failure_is_retried_soon(self) -> None:
        """Without any keys, a failed fetch is retried after one second."""
        clock = Clock()
        async with authority() as issuer, keys_of(issuer, clock) as keys:
            issuer.say("/jwks", {}, status=500)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    await keys.find("first", "ES256")
            assert issuer.count("/jwks") == 1
            issuer.publish(issuer.key)
            clock.time += 1
            await keys.find("first", "ES256")

    async def test_a_canceled_request_does_not_affect_others(self) -> None:
        """A canceled request does not affect others that wait for the same keys."""
        async with authority() as issuer, keys_of(issuer, Clock()) as keys:
            issuer.open.clear()
            first, second = (asyncio.ensure_future(keys.find("first", "ES256")) for _ in range(2))
            await until(lambda: issuer.asked)
            first.cancel()
            issuer.open.set()
            assert (await second).key_id == "first"
            assert first.cancelled()


class keys_of:
    """The keys of an issuer, closed at the end."""

    def __init__(self, issuer: Authority, clock: Clock) -> None:
        self._fetcher = HttpFetcher(5.0, 100_000)
        self._keys = KeySet(partial(self._fetcher.get, f"{issuer.url}/jwks"), HOUR, 30.0, monotonic=clock)

    async def __aenter__(self) -> KeySet:
        return self._keys

    async def __aexit__(self, *reason: object) -> None:
        await self._keys.close()
        await self._fetcher.close()


LARGE = {"keys": [{**SECOND.jwk, "kid": f"k{number}", "note": "x" * 6000} for number in range(60)]}


@pytest.mark.parametrize(
    ("content", "page"),
    [
        pytest.param({"keys": []}, {}, id="no-keys"),
        pytest.param({"keys": "first"}, {}, id="keys-are-text"),
        pytest.param({"keys": [1, None, "x"]}, {}, id="keys-are-none"),
        pytest.param({"keys": [{"kty": "oct", "kid": "first", "k": "c2VjcmV0"}]}, {}, id="a-secret"),
        pytest.param([], {}, id="a-list"),
        pytest.param({}, {}, id="nothing"),
        pytest.param({"keys": [SECOND.jwk] * 65}, {}, id="too-many"),
        pytest.param(LARGE, {}, id="too-large"),
        pytest.param({"keys": [SECOND.jwk]}, {"status": 302, "headers": {"location": "/elsewhere"}}, id="redirect"),
        pytest.param({"keys": [SECOND.jwk]}, {"status": 404}, id="not-found"),
        pytest.param({"keys": [SECOND.jwk]}, {"headers": {"content-encoding": "gzip"}}, id="packed"),
    ],
)
async def test_a_response_that_is_not_a_key_set(content: Any, page: dict[str, Any]) -> None:
    """A response that is not a key set rejects all requests with a retry hint."""
    async with authority() as issuer, gated(issuer.settings()) as server:
        issuer.say("/jwks", content, **page)
        issuer.say("/elsewhere", {"keys": [SECOND.jwk]})
        reply = await discover(server, bearer(SECOND.sign(issuer.claims())))
        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
        assert issuer.count("/elsewhere") == 0


async def test_a_slow_issuer() -> None:
    """A slow issuer costs a request at most the timeout."""
    async with authority() as issuer, gated(issuer.settings(timeout_seconds=0.05)) as server:
        issuer.open.clear()
        assert await statuses(server, *(issuer.token() for _ in range(5))) == [503] * 5
        assert await statuses(server, "nonsense") == [401]


async def test_an_issuer_that_is_not_there() -> None:
    """A port without a listener counts as an unreachable issuer."""
    async with authority() as issuer:
        auth, token = issuer.settings(), issuer.token()
    async with gated(auth) as server:
        assert await statuses(server, token) == [503]


PLACES = [
    ("", "/.well-known/oauth-authorization-server"),
    ("", "/.well-known/openid-configuration"),
    ("/realms/acme", "/.well-known/oauth-authorization-server/realms/acme"),
    ("/realms/acme", "/.well-known/openid-configuration/realms/acme"),
    ("/realms/acme", "/realms/acme/.well-known/openid-configuration"),
]


@pytest.mark.parametrize(("path", "place"), PLACES)
async def test_discovery(path: str, place: str) -> None:
    """Keys are discovered through the issuer's metadata, at any of the standard locations."""
    async with authority() as issuer:
        name = f"{issuer.url}{path}"
        issuer.say(place, {"issuer": name, "jwks_uri": f"{issuer.url}/jwks"})
        async with gated({"resource": RESOURCE, "issuers": [name]}) as server:
            assert (await principal_of(server, issuer.token(iss=name)))["issuer"] == name


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"issuer": "https://evil.example.com"}, id="of-another"),
        pytest.param({"issuer": None}, id="of-nobody"),
        pytest.param({"jwks_uri": "http://evil.example.com/jwks"}, id="keys-without-tls"),
        pytest.param({"jwks_uri": "file:///etc/keys"}, id="keys-in-a-file"),
        pytest.param({"jwks_uri": None}, id="no-keys"),
    ],
)
async def test_metadata_that_lies(metadata: dict[str, Any]) -> None:
    """Metadata of another issuer, or with wrong URLs, is rejected."""
    async with authority() as issuer:
        good = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
        issuer.say("/.well-known/oauth-authorization-server", {**good, **metadata})
        async with gated({"resource": RESOURCE, "issuers": [issuer.url]}) as server:
            assert await statuses(server, issuer.token()) == [503]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8500/keys", "https://localhost/keys", "http://[::1]/keys"])
async def test_keys_on_this_machine(url: str) -> None:
    """An issuer on another machine cannot send the server to services on its own machine."""

    class Fetched:
        def __init__(self) -> None:
            self.urls: list[str] = []

        async def get(self, url: str) -> dict[str, Any]:
            self.urls.append(url)
            return {"issuer": "https://id.example.com", "jwks_uri": jwks_uri}

    fetched: Any = Fetched()
    jwks_uri = url
    with pytest.raises(Unavailable, match=r"the jwks_uri in the metadata of https://id.example.com is on this machine"):
        await discover_keys(fetched, "https://id.example.com")
    assert url not in fetched.urls
    jwks_uri = "https://keys.example.com/keys"
    await discover_keys(fetched, "https://id.example.com")
    assert fetched.urls[-1] == jwks_uri


async def test_each_issuer_has_its_own_keys() -> None:
    """With several issuers, each accepts only its own keys."""
    async with authority() as one, authority() as other:
        for issuer in (one, other):
            metadata = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
            issuer.say("/.well-known/oauth-authorization-server", metadata)
        async with gated({"resource": RESOURCE, "issuers": [one.url, other.url]}) as server:
            assert await statuses(server, one.token(), other.token()) == [200, 200]
            assert await statuses(server, one.token(iss=other.url), other.token(iss=one.url)) == [401, 401]


async def test_keys_in_a_file(tmp_path: Path) -> None:
    """Keys can be in a file, which is read again for an unknown key."""
    file = tmp_path / "keys.json"
    async with authority() as issuer:
        file.write_text(json.dumps({"keys": [issuer.key.jwk]}), encoding="utf-8")
        auth = issuer.settings(jwks=str(file), jwks_refresh_seconds=1e-6)
        async with gated(auth) as server:
            new = SECOND.sign(issuer.claims())
            assert await statuses(server, issuer.token(), new) == [200, 401]
            file.write_text(json.dumps({"keys": [SECOND.jwk]}), encoding="utf-8")
            assert await statuses(server, new) == [200]
            assert issuer.asked == []


async def test_only_safe_addresses_are_fetched() -> None:
    """An address of another machine without https is refused before anything is sent."""
    fetcher = HttpFetcher(5.0)
    with pytest.raises(Unavailable, match="not an allowed address"):
        await fetcher.get("http://192.0.2.1/keys")
    await fetcher.close()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read"),
        ("[1]", "is not a JSON object"),
        (" " * 256 * 1024 + "{}", "has more than 262144 bytes"),
    ],
    ids=["missing", "list", "too-large"],
)
async def test_a_file_without_keys(tmp_path: Path, content: str | None, problem: str) -> None:
    """The server does not start if the file cannot be read."""
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    auth = {"resource": RESOURCE, "issuers": ["https://id.example.com"], "jwks": str(file)}
    with pytest.raises(ConfigurationError, match=rf"^Setting auth\.jwks: .*{problem}"):
        async with gated(auth):
            pass
