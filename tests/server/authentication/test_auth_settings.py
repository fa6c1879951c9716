"""The section `auth` and its contradictions."""

from typing import Any

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server.access.api_keys import hash_key
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.settings.loading import load_settings
from axolotl_server.urls import canonical, check_url, is_loopback

ISSUER = {"issuers": ["https://id.example.com"], "resource": "https://mcp.example.com/mcp"}
ASKED = {"introspection_url": "https://id.example.com/introspect", "resource": "https://mcp.example.com/mcp"}
HASH = f"sha256:{'0' * 64}"


def loaded(**auth: Any) -> AuthSettings:
    return load_settings(flags={"auth": auth}).auth


def test_defaults() -> None:
    """Authentication is off by default, and an issuer is enough to turn it on."""
    assert not loaded().is_used
    auth = loaded(**ISSUER)
    assert auth.is_used
    assert auth.accepted_audiences == ("https://mcp.example.com/mcp",)
    assert auth.servers == ("https://id.example.com",)
    assert not any(name.startswith("HS") for name in auth.signing_algorithms)
    assert "none" not in auth.signing_algorithms


@pytest.mark.parametrize(
    ("auth", "finding"),
    [
        ({**ISSUER, "algorithms": ["none"]}, "auth.algorithms"),
        ({**ISSUER, "algorithms": ["HS256"]}, "HS256 needs hmac_secret"),
        ({**ISSUER, "algorithms": ["RS256", "HS256"]}, "HS256 needs hmac_secret"),
        ({**ISSUER, "hmac_secret": "x" * 32, "algorithms": ["RS256"]}, "RS256 needs public keys"),
        ({**ISSUER, "hmac_secret": "x" * 31}, "hmac_secret must have at least 32 bytes"),
        ({**ISSUER, "hmac_secret": "x" * 40, "algorithms": ["HS512"]}, "hmac_secret must have at least 64 bytes"),
        ({**ISSUER, "hmac_secret": "x" * 32, "jwks": "https://id.example.com/k"}, "two sources of keys"),
        ({"jwks": "https://id.example.com/k"}, "jwks needs issuers"),
        ({**ISSUER, "issuers": ["https://a.example", "https://b.example"], "jwks": "/k"}, "needs a single issuer"),
        ({"issuers": ["https://id.example.com"]}, "resource is missing"),
        ({"issuers": ["id.example.com"]}, "is not a URL"),
        ({"issuers": ["http://id.example.com"]}, "must begin with https"),
        ({**ISSUER, "jwks": "ftp://id.example.com/k"}, "is not a URL"),
        ({**ISSUER, "jwks": "https://user:pass@id.example.com/k"}, "must not contain a user or a password"),
        ({**ISSUER, "resource": "https://mcp.example.com/mcp#x"}, "has a fragment"),
        ({**ISSUER, "resource": "https://mcp.example.com/mcp?x=1"}, "has a query"),
        ({**ISSUER, "resource": "/mcp"}, "is not a URL"),
        (ASKED, "authorization_servers is missing"),
        ({**ASKED, **ISSUER, "jwks": "/k"}, "two ways to verify"),
        ({**ASKED, **ISSUER, "introspection_client_id": "me"}, "must be set together"),
        ({"introspection_client_id": "me"}, "need introspection_url"),
        ({**ISSUER, "required_scopes": ["a b"]}, "auth.required_scopes"),
        ({**ISSUER, "required_scopes": ['a"']}, "auth.required_scopes"),
        ({"api_keys": {"ci": {"hash": "plain-key"}}}, "auth.api_keys.ci.hash"),
        ({"api_keys": {"ci": {"hash": HASH, "subject": "anonymous"}}}, "a client without a key"),
        ({"api_keys": {"anonymous": {"hash": HASH}}}, "the API key 'anonymous' has the name of clients without a key"),
        ({"api_keys": {"c i": {"hash": HASH}}}, "auth.api_keys"),
        ({"isuers": ["https://id.example.com"]}, "issuers"),
    ],
)
def test_contradictions(auth: dict[str, Any], finding: str) -> None:
    """Impossible or unsafe settings are reported by name, without secrets."""
    with pytest.raises(ConfigurationError) as error:
        loaded(**auth)
    assert finding in str(error.value)
    assert "pass@" not in str(error.value)
    assert "x" * 31 not in str(error.value)


def test_secrets_are_not_shown() -> None:
    """Secrets are not shown when settings are printed."""
    auth = loaded(**ISSUER, hmac_secret="s" * 32)
    asked = loaded(
        **ASKED,
        authorization_servers=["https://id.example.com"],
        **{"introspection_client_id": "me"},
        **{"introspection_client_secret": "t" * 32},
    )
    assert "s" * 32 not in repr(auth) + auth.model_dump_json()
    assert "t" * 32 not in repr(asked) + asked.model_dump_json()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """Only addresses of this machine count as loopback."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("https://Mcp.Example.com/MCP", "https://mcp.example.com/MCP"),
        ("HTTPS://mcp.example.com:443/mcp", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp/"),
        ("https://mcp.example.com:8443/mcp", "https://mcp.example.com:8443/mcp"),
        ("http://[::1]:80/mcp", "http://[::1]/mcp"),
        ("api://default", "api://default"),
        ("my-client-id", "my-client-id"),
        ("https://a@mcp.example.com/mcp", "https://a@mcp.example.com/mcp"),
        ("https://mcp.example.com:x/mcp", "https://mcp.example.com:x/mcp"),
        ("https://mcp.example.com\n/mcp", "https://mcp.example.com\n/mcp"),
        ("", ""),
    ],
)
def test_canonical(uri: str, expected: str) -> None:
    """Different spellings of a URL are normalized, and other texts stay unchanged."""
    assert canonical(uri) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    "url", ["https://id.example.com", "http://localhost:9/x", "http://[::1]:9", "http://127.0.0.1"]
)
def test_urls_that_may_be_asked(url: str) -> None:
    """URLs need TLS, except on the loopback interface."""
    assert check_url(url) == url


@pytest.mark.parametrize(
    "key", ["", "3", "/", "ab", "~~", "007", "1234", "secret", "SECRET", "changeme", "your-api-key"]
)
def test_guessable_keys(key: str) -> None:
    """The hash of a key that anybody would try is rejected, with what to do."""
    with pytest.raises(ConfigurationError, match="easy to guess: create a random one with axolotl auth hash-key"):
        loaded(api_keys={"ci": {"hash": hash_key(key)}})


def test_other_keys() -> None:
    """Other keys are accepted, and a key may be called anonymous if its subject is not."""
    keys = loaded(api_keys={"anonymous": {"hash": hash_key("axk_7Q"), "subject": "robot"}}).api_keys
    assert keys["anonymous"].principal("anonymous").subject == "robot"
