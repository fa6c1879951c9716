"""API keys in the settings."""

from typing import Any

import pytest

from axolotl_server.access.api_keys import hash_key
from tests.support.authorization_server import authority
from tests.support.servers.authenticated_server import bearer, challenge_of, discover, gated, principal_of

KEY, OTHER = "axk_first-key-of-some-length", "axk_second"
KEYS: dict[str, Any] = {
    "ci": {"hash": hash_key(KEY), "tenant": "acme", "scopes": ["read"], "roles": ["robot"]},
    "deploy": {"hash": hash_key(OTHER), "subject": "deployer"},
}


async def test_a_valid_key() -> None:
    """A key is a bearer token, and the settings define its principal."""
    async with gated({"api_keys": KEYS}) as server:
        one = await principal_of(server, KEY)
        assert one == {
            "subject": "ci",
            "tenant": "acme",
            "issuer": None,
            "scopes": ["read"],
            "roles": ["robot"],
            "claims": {},
        }
        assert (await principal_of(server, OTHER))["subject"] == "deployer"


@pytest.mark.parametrize("token", [KEY[:-1], KEY + "x", KEY.upper(), hash_key(KEY), hash_key(KEY)[7:], "ci"])
async def test_an_invalid_key(token: str) -> None:
    """A similar key, or the digest of one, is rejected, and the challenge reveals nothing."""
    async with gated({"api_keys": KEYS}) as server:
        reply = await discover(server, bearer(token) if ":" not in token else ("Authorization", f"Bearer {token}"))
        assert reply.status in (400, 401)
        assert "resource_metadata" not in challenge_of(reply)


async def test_without_a_key() -> None:
    """Without authorization servers, the challenge names none, and there is no metadata."""
    async with gated({"api_keys": KEYS}) as server:
        assert (await discover(server)).headers["www-authenticate"] == "Bearer"
        assert (
            await discover(server, bearer(KEY), method="GET", path="/.well-known/oauth-protected-resource")
        ).status == 404


async def test_keys_beside_an_issuer() -> None:
    """Keys and issued tokens work on one endpoint, and the same name is not the same principal."""
    keys = {"ada": {"hash": hash_key(KEY)}}
    async with authority() as issuer, gated(issuer.settings(api_keys=keys)) as server:
        robot, person = await principal_of(server, KEY), await principal_of(server, issuer.token())
        assert (robot["subject"], robot["issuer"]) == ("ada", None)
        assert (person["subject"], person["issuer"]) == ("ada", issuer.url)
        assert (await discover(server, bearer("nonsense"))).status == 401


async def test_a_key_needs_the_scopes_too() -> None:
    """A key needs the required scopes too."""
    async with gated({"api_keys": KEYS, "required_scopes": ["read"]}) as server:
        assert (await discover(server, bearer(KEY))).status == 200
        assert (await discover(server, bearer(OTHER))).status == 403
