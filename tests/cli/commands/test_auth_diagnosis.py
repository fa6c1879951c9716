"""The diagnosis of authentication, and the settings for identity providers, with recorded shapes and test keys."""

import json
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from axolotl_cli.checking.auth_diagnosis import AuthDiagnosis, AuthFinding
from axolotl_core import Principal
from axolotl_core.errors import InvalidToken
from axolotl_server.access.fetcher import HttpFetcher
from axolotl_server.access.verifiers import make_verifier
from axolotl_server.settings.authentication import AuthSettings
from tests.support.authorization_server import Authority, Page, SigningKey, authority
from tests.support.docs.pages import EXAMPLES
from tests.support.servers.authenticated_server import gated
from tests.support.servers.serving import free_port


async def offer(principal: Principal) -> str:
    return f"offer of {principal.subject}"


async def diagnose(settings: Any, token: str | None = None, url: str | None = None) -> dict[str, AuthFinding]:
    fetcher = HttpFetcher(2.0, 100_000)
    diagnosis = AuthDiagnosis(AuthSettings.model_validate(settings), fetcher, url=url, token=token, offer=offer)
    try:
        found = [finding async for finding in diagnosis.findings()]
    finally:
        await fetcher.close()
    assert not any(token in finding.text for finding in found if token)
    return {finding.check.partition(" ")[0]: finding for finding in found}


def settings_of(issuer: Authority, **changes: Any) -> dict[str, Any]:
    """Let an authority publish its metadata, and give the settings of a server that discovers its keys."""
    metadata = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks", "code_challenge_methods_supported": ["S256"]}
    issuer.say("/.well-known/oauth-authorization-server", metadata)
    return {name: value for name, value in issuer.settings(**changes).items() if name != "jwks"}


def states(found: Mapping[str, AuthFinding]) -> list[str]:
    return [f"{name} {finding.state}" for name, finding in found.items()]


async def test_all_is_well() -> None:
    """Everything that can be checked is ok, the rest is skipped."""
    async with authority() as issuer:
        found = await diagnose(settings_of(issuer), issuer.token(sub="ada"))
    assert states(found) == [
        "settings ok",
        "metadata ok",
        "keys ok",
        "token ok",
        "server skipped",
        "registration ok",
        "policy ok",
    ]
    assert found["policy"].text == "offer of ada"


@pytest.mark.parametrize(
    ("changes", "problem", "setting"),
    [
        ({"iss": "https://sts.windows.net/1/"}, "an Entra token of version 1", "issuers"),
        ({"aud": "api://shop"}, "aud is api://shop, the settings accept", "audiences"),
        ({"aud": None, "client_id": "c"}, "it has client_id only, as those of Cognito do", "audiences"),
        ({"exp": 1}, "seconds ago: get a new one", None),
        ({"nbf": 32_503_680_000}, "compare the clocks", None),
        ({"realm_access": {"roles": ["clerk"]}}, 'set role_claims = ["realm_access.roles"]', "role_claims"),
    ],
    ids=["issuer", "audience", "no audience", "expired", "early", "roles"],
)
async def test_tokens(changes: dict[str, Any], problem: str, setting: str | None) -> None:
    """A token that is refused is explained with what it has and what the settings expect."""
    async with authority() as issuer:
        claims = {name: value for name, value in issuer.claims(**changes).items() if value is not None}
        found = (await diagnose(settings_of(issuer), issuer.key.sign(claims)))["token"]
    assert (found.state, found.setting, found.code) == ("problem", setting, 1)
    assert problem in found.text


async def test_other_tokens() -> None:
    """Opaque tokens, wrong signatures and missing scopes are explained, too."""
    async with authority() as issuer:
        opaque = (await diagnose(settings_of(issuer), "ya29.opaque"))["token"]
        forged = (await diagnose(settings_of(issuer), SigningKey(issuer.key.name).sign(issuer.claims())))["token"]
        poor = (await diagnose(settings_of(issuer, required_scopes=["admin"]), issuer.token(scope="read")))["token"]
    assert "the token is not a JWT: it is opaque" in opaque.text
    assert forged.text == "the signature of the token is wrong"
    assert "the token lacks the scopes admin" in poor.text


_DEEP = Page(b'{"keys": ' + b"[" * 20_000 + b"]" * 20_000 + b"}")
_ODD = Page(b'{"keys": [{"kty": "RSA", "kid": "odd", "alg": ["RS256"]}]}')


@pytest.mark.parametrize(
    ("metadata", "keys", "check", "problem"),
    [
        ({"jwks_uri": "http://[x"}, None, "keys", "has no jwks_uri, or not an https URL"),
        ({"jwks_uri": 5}, None, "keys", "has no jwks_uri, or not an https URL"),
        ({}, _DEEP, "keys", "answered with something that is not a JSON object"),
        ({}, _ODD, "keys", "odd is for ['RS256'], which is not"),
        ({"code_challenge_methods_supported": 5}, None, "registration", "does not announce PKCE with S256"),
    ],
    ids=["malformed URL", "number as URL", "deep", "list as algorithm", "number as methods"],
)
async def test_what_an_issuer_should_not_publish(metadata: Any, keys: Page | None, check: str, problem: str) -> None:
    """Malformed metadata and keys are findings, whatever they contain."""
    async with authority() as issuer:
        settings = settings_of(issuer)
        usual = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
        issuer.say("/.well-known/oauth-authorization-server", {**usual, **metadata})
        if keys is not None:
            issuer.pages["/jwks"] = keys
        assert problem in (await diagnose(settings))[check].text


async def test_an_audience_that_is_a_number() -> None:
    """A token whose audience is neither a text nor a list is explained like any other."""
    async with authority() as issuer:
        found = await diagnose(settings_of(issuer), issuer.key.sign(issuer.claims(aud=5)))
    assert "aud is 5, the settings accept" in found["token"].text


async def test_issuers() -> None:
    """A slash too many, missing keys, weak keys and an issuer that does not answer."""
    async with authority() as issuer:
        slash = await diagnose(settings_of(issuer, issuers=[f"{issuer.url}/"]))
        assert "they differ in the slash at the end" in slash["metadata"].text
        issuer.publish(SigningKey("weak", "RS256", 1024))
        weak = (await diagnose(settings_of(issuer)))["keys"]
        assert "weak has 1024 bits; at least 2048 are needed" in weak.text
        issuer.publish()
        assert "no key that can verify signatures" in (await diagnose(settings_of(issuer)))["keys"].text
        settings = settings_of(issuer)
    silent = await diagnose(settings)
    assert (silent["metadata"].state, silent["metadata"].code) == ("problem", 3)


async def test_settings() -> None:
    """Mistakes in the settings have the exit code 2."""
    unset = (await diagnose({}))["settings"]
    assert (unset.code, unset.setting) == (2, "resource")
    async with authority() as issuer:
        other = (await diagnose(settings_of(issuer), url="https://other.example/mcp"))["settings"]
        plain = (await diagnose(settings_of(issuer, hmac_secret="x" * 40)))["metadata"]
    assert (other.code, "both must be the same" in other.text) == (2, True)
    assert plain.state == "skipped"


async def test_server() -> None:
    """The running server is asked for its challenge and its metadata, and whether it accepts the Host."""
    listener = free_port()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    async with authority() as issuer:
        auth = settings_of(issuer, resource=url)
        async with gated(auth, listener=listener):
            found = (await diagnose(auth, url=url))["server"]
            other = (await diagnose({**auth, "resource": f"{url}/x"}, url=f"{url}/x"))["server"]
    assert (found.state, "401 with a challenge, metadata at http://127.0.0.1:" in found.text) == ("ok", True)
    assert (other.state, other.setting) == ("problem", "resource")


CLAIMS: dict[str, tuple[dict[str, Any], Principal]] = {
    "keycloak": (
        {"typ": "Bearer", "sub": "u1", "azp": "cli", "scope": "openid read", "realm_access": {"roles": ["clerk"]}},
        Principal("u1", scopes=frozenset({"openid", "read"}), roles=frozenset({"clerk"})),
    ),
    "entra": (
        {"ver": "2.0", "sub": "pairwise", "oid": "u1", "tid": "t1", "scp": "Orders.Read", "roles": ["Clerk"]},
        Principal("u1", "t1", frozenset({"Orders.Read"}), frozenset({"Clerk"})),
    ),
    "okta": (
        {"ver": 1, "sub": "ada@example.com", "uid": "00u1", "scp": ["read"], "groups": ["Everyone"]},
        Principal("ada@example.com", scopes=frozenset({"read"}), roles=frozenset({"Everyone"})),
    ),
    "auth0": (
        {"sub": "auth0|1", "azp": "c", "scope": "openid read", "permissions": ["orders:read"]},
        Principal("auth0|1", scopes=frozenset({"openid", "read"}), roles=frozenset({"orders:read"})),
    ),
    "cognito": (
        {"sub": "u1", "token_use": "access", "client_id": "c", "scope": "shop/read", "cognito:groups": ["clerks"]},
        Principal("u1", scopes=frozenset({"shop/read"}), roles=frozenset({"clerks"})),
    ),
    "google": ({"sub": "1", "azp": "robot", "email": "r@x.iam.gserviceaccount.com"}, Principal("1")),
}


@pytest.mark.parametrize("provider", CLAIMS)
async def test_recipes(provider: str, tmp_path: Path) -> None:
    """The settings on the page accept an access token with the claims that the provider documents."""
    written = tomllib.loads((EXAMPLES / "issuers" / f"{provider}.toml").read_text())["auth"]
    key = SigningKey("k1", "RS256")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [key.jwk]}))
    settings = AuthSettings.model_validate({**written, "jwks": str(tmp_path / "jwks.json")})
    shape, expected = CLAIMS[provider]
    times = {"iat": int(time.time()), "exp": int(time.time()) + 300}
    claims = {**shape, **times, "iss": written["issuers"][0], "aud": settings.accepted_audiences[0]}
    made = make_verifier(settings)
    assert made.verifier is not None
    principal = await made.verifier.verify(key.sign(claims))
    assert (principal.subject, principal.tenant, principal.scopes, principal.roles) == (
        expected.subject,
        expected.tenant,
        expected.scopes,
        expected.roles,
    )
    del claims["aud"]
    with pytest.raises(InvalidToken):
        await made.verifier.verify(key.sign(claims))
    await made.close()


def test_every_recipe_is_tested() -> None:
    """Every file of the page has a recorded shape."""
    assert {file.stem for file in (EXAMPLES / "issuers").glob("*.toml")} == {*CLAIMS}
