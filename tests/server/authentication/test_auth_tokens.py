"""Valid and forged tokens."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import jwt
import pytest
import pytest_asyncio

from tests.support.authorization_server import RESOURCE, Authority, SigningKey, authority
from tests.support.servers.authenticated_server import bearer, challenge_of, discover, gated, principal_of
from tests.support.servers.serving import HttpServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

Forge = Callable[[Authority], str]
RSA = SigningKey("rsa", "RS256")
OTHER = SigningKey("first")
WEAK = SigningKey("weak", "RS256", bits=1024)
FOREIGN = "https://evil.example.com"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def issuer() -> AsyncIterator[Authority]:
    """An issuer with two good keys, a weak one, and one for another purpose."""
    async with authority() as one:
        encrypting = {**SigningKey("encrypting").jwk, "use": "enc"}
        shared = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 32).decode()}
        one.publish(one.key, RSA, WEAK, encrypting, shared)
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(issuer: Authority) -> AsyncIterator[HttpServer]:
    """A server that trusts the issuer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("axolotl_server.http.server.http_protocol.MAX_HEAD_BYTES", 65_536)
        async with gated(issuer.settings(required_scopes=["read"])) as running:
            yield running


def part(content: Any) -> str:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def by_hand(header: Any, claims: Any, signature: bytes = b"") -> str:
    return f"{part(header)}.{part(claims)}.{part(signature)}"


def hashed(key: bytes, header: dict[str, Any], claims: Any) -> str:
    """Sign with the public key as a shared secret."""
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


def changed(token: str, index: int, content: Any) -> str:
    """Replace the content of a signed token."""
    parts = token.split(".")
    parts[index] = part(content)
    return ".".join(parts)


def now() -> int:
    return int(time.time())


FORGED: dict[str, Forge] = {
    "no-algorithm": lambda one: by_hand({"alg": "none", "typ": "JWT"}, one.claims()),
    "no-algorithm-in-capitals": lambda one: by_hand({"alg": "NONE"}, one.claims()),
    "no-algorithm-with-a-key": lambda one: by_hand({"alg": "none", "kid": "first"}, one.claims(), b"x" * 64),
    "no-algorithm-named": lambda one: by_hand({"kid": "first"}, one.claims(), b"x" * 64),
    "algorithm-is-a-list": lambda one: by_hand({"alg": ["ES256"], "kid": "first"}, one.claims(), b"x" * 64),
    "public-key-as-secret": lambda one: hashed(RSA.public_pem, {"alg": "HS256", "kid": "rsa"}, one.claims()),
    "public-key-as-secret-without-end": lambda one: hashed(
        RSA.public_pem.strip(), {"alg": "HS256", "kid": "rsa"}, one.claims()
    ),
    "key-document-as-secret": lambda one: hashed(
        json.dumps(RSA.jwk).encode(), {"alg": "HS256", "kid": "rsa"}, one.claims()
    ),
    "published-secret": lambda one: hashed(b"s" * 32, {"alg": "HS256", "kid": "shared"}, one.claims()),
    "empty-secret": lambda one: hashed(b"", {"alg": "HS256", "kid": "first"}, one.claims()),
    "another-key-of-that-name": lambda one: OTHER.sign(one.claims()),
    "key-of-another-kind": lambda one: RSA.sign(one.claims(), kid="first"),
    "key-for-encryption": lambda one: OTHER.sign(one.claims(), kid="encrypting"),
    "key-that-is-too-weak": lambda one: WEAK.sign(one.claims()),
    "unknown-key": lambda one: OTHER.sign(one.claims(), kid="unheard-of"),
    "no-key-named": lambda one: jwt.encode(one.claims(), OTHER.private, "ES256"),
    "key-is-a-path": lambda one: OTHER.sign(one.claims(), kid="../../../../dev/null"),
    "key-is-a-query": lambda one: OTHER.sign(one.claims(), kid="' OR '1'='1"),
    "key-is-a-url": lambda one: OTHER.sign(one.claims(), kid=f"{FOREIGN}/key"),
    "key-name-is-long": lambda one: OTHER.sign(one.claims(), kid="k" * 2000),
    "key-name-is-a-number": lambda one: by_hand({"alg": "ES256", "kid": 7}, one.claims(), b"x" * 64),
    "key-is-brought-along": lambda one: OTHER.sign(one.claims(), kid="x", jwk=OTHER.jwk),
    "keys-are-elsewhere": lambda one: OTHER.sign(one.claims(), kid="x", jku=f"{one.url}/evil"),
    "certificate-is-elsewhere": lambda one: OTHER.sign(one.claims(), kid="x", x5u=f"{one.url}/evil"),
    "certificate-is-brought-along": lambda one: OTHER.sign(one.claims(), x5c=["MIIB"]),
    "signature-is-gone": lambda one: one.token().rsplit(".", 1)[0] + ".",
    "signature-is-zero": lambda one: changed(one.token(), 2, b"\0" * 64),
    "signature-of-another-token": lambda one: ".".join(
        [*one.token(sub="eve").split(".")[:2], one.token().split(".")[2]]
    ),
    "claims-were-changed": lambda one: changed(one.token(), 1, one.claims(sub="root")),
    "header-was-changed": lambda one: changed(one.token(), 0, {"alg": "ES256", "kid": "first", "typ": "x"}),
    "expired": lambda one: one.token(exp=now() - 31),
    "expired-long-ago": lambda one: one.token(exp=1),
    "without-an-end": lambda one: one.token(exp=None),
    "end-is-no-time": lambda one: one.token(exp="tomorrow"),
    "end-is-endless": lambda one: one.token(exp=float("inf")),
    "not-yet": lambda one: one.token(nbf=now() + 90),
    "beginning-is-no-time": lambda one: one.token(nbf="yesterday"),
    "issued-in-the-future": lambda one: one.token(iat=now() + 90),
    "for-another-server": lambda one: one.token(aud="https://other.example.com/mcp"),
    "for-a-part-of-the-address": lambda one: one.token(aud="https://mcp.example.com"),
    "for-more-than-the-address": lambda one: one.token(aud=f"{RESOURCE}/more"),
    "for-nobody": lambda one: one.token(aud=None),
    "for-an-empty-list": lambda one: one.token(aud=[]),
    "for-a-number": lambda one: one.token(aud=7),
    "for-a-list-of-numbers": lambda one: one.token(aud=[RESOURCE, 7]),
    "for-an-object": lambda one: one.token(aud={RESOURCE: True}),
    "of-another-issuer": lambda one: one.token(iss=FOREIGN),
    "of-an-issuer-with-a-slash": lambda one: one.token(iss=f"{one.url}/"),
    "of-no-issuer": lambda one: one.token(iss=None),
    "of-a-list-of-issuers": lambda one: one.token(iss=[one.url]),
    "of-nobody": lambda one: one.token(sub=None),
    "of-an-empty-name": lambda one: one.token(sub=""),
    "of-half-a-letter": lambda one: one.token(sub="\ud800"),
    "of-two-lines": lambda one: one.token(sub="ada\nroot"),
    "scopes-with-signs": lambda one: one.token(scope=["read\x00"]),
    "of-a-number": lambda one: one.token(sub=7),
    "scopes-are-numbers": lambda one: one.token(scope=[1, 2]),
    "scopes-are-an-object": lambda one: one.token(scope={"read": True}),
    "too-many-scopes": lambda one: one.token(scope=" ".join(f"s{number}" for number in range(1001))),
    "critical-header": lambda one: one.key.sign(one.claims(), crit=["exp"], exp=1),
    "payload-is-elsewhere": lambda one: by_hand({"alg": "ES256", "kid": "first", "b64": False}, b"", b"x" * 64),
    "claims-are-a-list": lambda one: one.key.sign([1]),
    "claims-are-deep": lambda one: one.key.sign(b"[" * 5000),
    "header-is-deep": lambda one: by_hand(b'{"alg":' * 2000, one.claims(), b"x"),
    "header-is-no-text": lambda one: by_hand(b"\xff\xfe", one.claims(), b"x"),
    "type-of-another-token": lambda one: one.key.sign(one.claims(), typ="logout+jwt"),
    "type-that-is-a-number": lambda one: one.key.sign(one.claims(), typ=5),
    "id-token-with-a-hash": lambda one: one.token(at_hash="x"),
    "id-token-of-keycloak": lambda one: one.token(typ="ID"),
    "refresh-token-of-keycloak": lambda one: one.token(typ="Refresh"),
    "id-token-of-cognito": lambda one: one.token(token_use="id"),
    "id-token-with-a-nonce": lambda one: one.token(nonce="n-0S6"),
    "logout-token": lambda one: one.token(events={"http://schemas.openid.net/event/backchannel-logout": {}}),
    "bound-to-a-key": lambda one: one.token(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
    "bound-to-a-certificate": lambda one: one.key.sign(one.claims(cnf={"x5t#S256": "bwcK0esc3A"}), typ="at+jwt"),
    "no-jwt": lambda one: "not-a-jwt",
    "two-parts": lambda one: one.token().rsplit(".", 1)[0],
    "five-parts": lambda one: "a.b.c.d.e",
    "only-dots": lambda one: "..",
    "too-long": lambda one: one.token() + "A" * 20_000,
    "too-long-claims": lambda one: one.token(note="x" * 20_000),
}


@pytest.mark.parametrize("forge", [pytest.param(forge, id=name) for name, forge in FORGED.items()])
async def test_forged(server: HttpServer, issuer: Authority, forge: Forge) -> None:
    """A forged token is rejected with a challenge."""
    token = forge(issuer)
    reply = await discover(server, bearer(token))
    assert reply.status == 401
    challenge = challenge_of(reply)
    assert challenge["error"] == "invalid_token"
    assert challenge["resource_metadata"] == METADATA
    assert challenge["scope"] == "read"
    told = reply.body + repr(reply.headers).encode()
    assert token.encode() not in told
    assert b"evil" not in told
    assert issuer.count("/evil") == 0


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="plain"),
        pytest.param({"nbf": 1, "exp": 2**35}, id="times"),
        pytest.param({"aud": ["https://other.example.com", RESOURCE]}, id="several-audiences"),
        pytest.param({"aud": "HTTPS://MCP.Example.com/mcp"}, id="audience-in-capitals"),
        pytest.param({"aud": "https://mcp.example.com:443/mcp"}, id="audience-with-its-port"),
        pytest.param({"scope": None, "scp": ["read", "write"]}, id="scopes-as-a-list"),
        pytest.param({"scope": "  read  write "}, id="scopes-with-spaces"),
    ],
)
async def test_good(server: HttpServer, issuer: Authority, changes: dict[str, Any]) -> None:
    """A valid token is accepted repeatedly."""
    token = issuer.token(**changes)
    for _ in range(3):
        assert (await principal_of(server, token))["subject"] == "ada"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "n-0S6"}, "the token is an ID token or a refresh token: send an access token"),
        ({"events": {}}, "the token is a logout token or another report of events: send an access token"),
        ({"cnf": {}}, "the token is bound to a key (cnf), which this server cannot check: send one without cnf"),
    ],
)
async def test_other_tokens(server: HttpServer, issuer: Authority, claims: dict[str, Any], reason: str) -> None:
    """The challenge says why a token is not one that a bearer may use."""
    assert challenge_of(await discover(server, bearer(issuer.token(**claims))))["error_description"] == reason


@pytest.mark.parametrize("claims", [{"typ": "Bearer"}, {"token_use": "access"}])
async def test_an_access_token_with_a_nonce(server: HttpServer, issuer: Authority, claims: dict[str, Any]) -> None:
    """A token that says it is an access token may have a nonce, as those of older versions of Keycloak do."""
    assert (await discover(server, bearer(issuer.token(nonce="n-0S6", **claims)))).status == 200


@pytest.mark.parametrize("kind", ["at+jwt", "application/at+jwt", "AT+JWT", "JWT", "jwt", None])
async def test_types(server: HttpServer, issuer: Authority, kind: str | None) -> None:
    """A token has the type of an access token, or the usual one, or none."""
    claims = issuer.claims(typ="Bearer", token_use="access")
    assert (await discover(server, bearer(issuer.key.sign(claims, typ=kind)))).status == 200


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -5), ("nbf", 20), ("iat", 20)])
async def test_clocks_may_be_apart(server: HttpServer, issuer: Authority, claim: str, seconds: int) -> None:
    """Clock differences up to the allowed skew are accepted."""
    assert (await discover(server, bearer(issuer.token(**{claim: now() + seconds})))).status == 200


async def test_a_key_of_each_kind(server: HttpServer, issuer: Authority) -> None:
    """Tokens of both published keys are accepted."""
    assert (await discover(server, bearer(RSA.sign(issuer.claims())))).status == 200
    assert (await discover(server, bearer(issuer.token()))).status == 200


@pytest.mark.parametrize("algorithm", ["ES384", "ES512", "EdDSA", "PS256", "RS512"])
async def test_algorithms(algorithm: str) -> None:
    """All allowed algorithms work, and a token without a key id uses the only key."""
    async with authority() as issuer:
        key = SigningKey("only", algorithm)
        issuer.publish(key)
        async with gated(issuer.settings()) as server:
            nameless = jwt.encode(issuer.claims(), key.private, algorithm)
            assert (await discover(server, bearer(nameless))).status == 200
            assert (await discover(server, bearer(key.sign(issuer.claims())))).status == 200


async def test_an_algorithm_that_was_not_allowed() -> None:
    """The settings, not the token or the key, define the allowed algorithms."""
    async with authority() as issuer, gated(issuer.settings(algorithms=["RS256"])) as server:
        assert (await discover(server, bearer(issuer.token()))).status == 401


async def test_a_key_is_for_its_algorithm() -> None:
    """A key is used only for its declared purpose and algorithm."""
    async with authority() as issuer:
        issuer.publish({**RSA.jwk, "alg": "RS256"})
        async with gated(issuer.settings()) as server:
            other = jwt.encode(issuer.claims(), RSA.private, "PS256", {"kid": "rsa"})
            assert (await discover(server, bearer(other))).status == 401
            assert (await discover(server, bearer(RSA.sign(issuer.claims())))).status == 200


async def test_keys_with_the_same_id_are_rejected() -> None:
    """Two keys with the same id are both rejected."""
    async with authority() as issuer:
        issuer.publish(issuer.key, OTHER)
        async with gated(issuer.settings()) as server:
            assert (await discover(server, bearer(issuer.token()))).status == 401


async def test_a_shared_secret() -> None:
    """With a shared secret, only tokens signed with it are accepted, and no public keys are fetched."""
    secret = "s3cret-of-at-least-thirty-two-bytes"
    async with authority() as issuer:
        auth = {"resource": RESOURCE, "issuers": [issuer.url], "hmac_secret": secret}
        async with gated(auth) as server:
            assert (await discover(server, bearer(jwt.encode(issuer.claims(), secret, "HS256")))).status == 200
            wrong = jwt.encode(issuer.claims(), secret[::-1], "HS256")
            assert (await discover(server, bearer(wrong))).status == 401
            assert (await discover(server, bearer(issuer.token()))).status == 401
            assert issuer.asked == []


async def test_missing_scopes(server: HttpServer, issuer: Authority) -> None:
    """A valid token without the required scopes gets a challenge that names them."""
    reply = await discover(server, bearer(issuer.token(scope="write")))
    assert reply.status == 403
    challenge = challenge_of(reply)
    assert (challenge["error"], challenge["scope"]) == ("insufficient_scope", "read")
    assert challenge["resource_metadata"] == METADATA


async def test_claims_become_the_principal() -> None:
    """Subject, tenant, scopes and roles come from the configured claims, also from nested objects."""
    auth = {"tenant_claim": "org.id", "role_claims": ["realm_access.roles", "https://acme.example/roles"]}
    claims = {
        "org": {"id": "acme"},
        "realm_access": {"roles": ["clerk"]},
        "https://acme.example/roles": "auditor",
        "scope": "read write",
    }
    async with authority() as issuer, gated(issuer.settings(**auth)) as server:
        one = await principal_of(server, issuer.token(**claims))
    assert one.pop("claims")["scope"] == "read write"
    assert one == {
        "subject": "ada",
        "tenant": "acme",
        "issuer": issuer.url,
        "scopes": ["read", "write"],
        "roles": ["auditor", "clerk"],
    }


@pytest.mark.parametrize("nested", [{"realm_access": {"roles": ["clerk"]}}, {}], ids=["both", "only-the-name"])
async def test_a_claim_with_the_name_of_a_path(nested: dict[str, Any]) -> None:
    """A claim whose name contains a dot does not replace the one in an object."""
    async with authority() as issuer, gated(issuer.settings(role_claims=["realm_access.roles"])) as server:
        one = await principal_of(server, issuer.token(**nested, **{"realm_access.roles": ["admin"]}))
    assert one["roles"] == (["clerk"] if nested else [])


@pytest.mark.parametrize(("setting", "claims"), [("tenant_claim", {"org": 7}), ("subject_claim", {"org": ["a"]})])
async def test_an_invalid_subject_or_tenant(setting: str, claims: dict[str, Any]) -> None:
    """An invalid subject or tenant claim is rejected."""
    async with authority() as issuer, gated(issuer.settings(**{setting: "org"})) as server:
        assert (await discover(server, bearer(issuer.token(**claims)))).status == 401
