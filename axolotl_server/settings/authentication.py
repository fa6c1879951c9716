"""The section `auth` of the settings."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Literal, Self, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    Field,
    PositiveFloat,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.settings.section import Section
from axolotl_server.urls import check_url

SigningAlgorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"
]

_BY_PUBLIC_KEY: tuple[SigningAlgorithm, ...] = tuple(
    name for name in get_args(SigningAlgorithm) if not name.startswith("HS")
)


_Url = Annotated[str, AfterValidator(check_url)]
_UrlOrPath = Annotated[str, AfterValidator(lambda value: check_url(value) if "://" in value else value)]
_Scope = Annotated[str, StringConstraints(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]
_Name = Annotated[str, StringConstraints(min_length=1)]
_KeyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


_COMMON_KEYS = """
    admin administrator api apikey api_key api-key auth axolotl bearer changeme change-me default demo dev development
    example foo foobar guest hello key letmein local localhost login mcp mykey my-key mysecret my-secret none null pass
    passwd password password1 password123 prod production qwerty root secret secretkey server staging test test-key
    testing test123 token undefined user welcome your-key your-key-here your_api_key your-api-key
"""


@cache
def _guessable_hashes() -> frozenset[str]:
    """Hash the keys that anybody would try: up to two printable characters, up to four digits, common words."""
    from hashlib import sha256  # few servers have API keys

    words = _COMMON_KEYS.split()
    characters = [chr(code) for code in range(0x20, 0x7F)]
    pairs = (first + second for first in characters for second in characters)
    numbers = (f"{number:0{digits}}" for digits in (3, 4) for number in range(10**digits))
    keys = ("", *characters, *pairs, *numbers, *words, *map(str.upper, words))
    return frozenset(f"sha256:{sha256(key.encode()).hexdigest()}" for key in keys)


class ApiKeySettings(Section):
    """An API key. Create one with `axolotl auth hash-key`."""

    hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    """The hash of the key. The key itself is not stored."""
    subject: _Name | None = None
    """The subject of its holder. The name of the key unless set."""
    tenant: str | None = None
    """The tenant of its holder."""
    scopes: frozenset[_Scope] = frozenset()
    """The scopes of its holder."""
    roles: frozenset[str] = frozenset()
    """The roles of its holder."""

    @field_validator("hash")
    @classmethod
    def _refuse_guessable(cls, value: str) -> str:
        if value in _guessable_hashes():
            raise ValueError("the key with this hash is easy to guess: create a random one with axolotl auth hash-key")
        return value

    @field_validator("subject")
    @classmethod
    def _refuse_anonymous(cls, subject: str | None) -> str | None:
        if subject == ANONYMOUS.subject:
            raise ValueError(f"{subject!r} means a client without a key")
        return subject

    def principal(self, name: str) -> Principal:
        """Return the principal for the key of this name."""
        return Principal(self.subject or name, self.tenant, self.scopes, self.roles)


class AuthSettings(Section):
    """Authentication with bearer tokens over HTTP. Off unless something is set here or in the container."""

    resource: _Url | None = None
    """The public URL of this server. Its host is accepted like those of `http.allowed_hosts`."""
    issuers: tuple[_Url, ...] = ()
    """The accepted issuers, exactly as in the claim `iss`."""
    audiences: tuple[_Name, ...] = ()
    """The accepted values of the claim `aud`. `auth.resource` unless set."""
    authorization_servers: tuple[_Url, ...] = ()
    """The authorization servers that issue tokens. `auth.issuers` unless set."""
    jwks: _UrlOrPath | None = None
    """The URL of the issuer's public keys, or a file with them, which is reread as often as a URL would be. The URL in
    the issuer's metadata unless set."""
    hmac_secret: SecretStr | None = None
    """A secret shared with the issuer, instead of public keys."""
    algorithms: tuple[SigningAlgorithm, ...] = ()
    """The accepted algorithms. Unless set, all with public keys, or HS256 with a shared secret."""
    required_scopes: tuple[_Scope, ...] = ()
    """The scopes that every token needs."""
    subject_claim: _Name = "sub"
    """The claim with the subject. A dot descends into an object, as in `realm_access.roles`."""
    scope_claims: tuple[_Name, ...] = ("scope", "scp")
    """The claims with scopes, each a space-separated string or a list."""
    role_claims: tuple[_Name, ...] = ("roles",)
    """The claims with roles."""
    tenant_claim: _Name | None = None
    """The claim with the tenant. None unless set."""
    introspection_url: _Url | None = None
    """The introspection endpoint that verifies each token, instead of a signature."""
    introspection_client_id: _Name | None = None
    """The client id of this server for introspection."""
    introspection_client_secret: SecretStr | None = None
    """The client secret of this server for introspection."""
    api_keys: dict[_KeyName, ApiKeySettings] = Field({})
    """API keys by name."""
    token_cache_seconds: float | None = Field(None, ge=0)
    """How long a verified token is cached. Depends on the kind of verification unless set."""
    timeout_seconds: PositiveFloat = 2.0
    """How long fetching keys or verifying a token may take before the request gets 503."""
    jwks_refresh_seconds: PositiveFloat = 30.0
    """The minimum time between two fetches caused by tokens with unknown keys."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = [
            *self._faults_of_signatures(),
            *self._faults_of_introspection(),
            *self._faults_of_resource(),
            *self._faults_of_keys(),
        ]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def is_used(self) -> bool:
        """Whether anything is set. If so, every request needs a token, even if the settings are incomplete."""
        return bool(self.model_fields_set)

    @property
    def signing_algorithms(self) -> tuple[SigningAlgorithm, ...]:
        """The accepted algorithms."""
        return self.algorithms or (_BY_PUBLIC_KEY if self.hmac_secret is None else ("HS256",))

    @property
    def accepted_audiences(self) -> tuple[str, ...]:
        """The accepted audiences."""
        return self.audiences or (() if self.resource is None else (self.resource,))

    @property
    def servers(self) -> tuple[str, ...]:
        """The authorization servers that issue tokens."""
        return self.authorization_servers or self.issuers

    def _faults_of_signatures(self) -> Iterator[str]:
        places = [name for name in ("jwks", "hmac_secret") if getattr(self, name) is not None]
        if len(places) > 1:
            yield f"{' and '.join(places)} are two sources of keys: keep one"
        if places and not self.issuers:
            yield f"{places[0]} needs issuers: set the issuer that signs the tokens"
        if places and len(self.issuers) > 1:
            yield f"{places[0]} needs a single issuer: the keys of several issuers are fetched from each of them"
        shared = [name for name in self.algorithms if name.startswith("HS")]
        if shared and self.hmac_secret is None:
            yield f"{', '.join(shared)} needs hmac_secret and cannot be used with public keys"
        if self.hmac_secret is not None:
            yield from self._faults_of_secret(self.hmac_secret.get_secret_value())

    def _faults_of_secret(self, secret: str) -> Iterator[str]:
        public = [name for name in self.algorithms if not name.startswith("HS")]
        if public:
            yield f"{', '.join(public)} needs public keys and cannot be used with hmac_secret"
        longest = max(int(name[2:]) // 8 for name in ("HS256", *self.algorithms) if name.startswith("HS"))
        if len(secret.encode()) < longest:
            yield f"hmac_secret must have at least {longest} bytes"

    def _faults_of_introspection(self) -> Iterator[str]:
        if self.introspection_url is None:
            if self.introspection_client_id is not None or self.introspection_client_secret is not None:
                yield "introspection_client_id and introspection_client_secret need introspection_url"
            return
        if self.jwks is not None or self.hmac_secret is not None:
            yield "introspection_url and keys are two ways to verify a token: keep one"
        if (self.introspection_client_id is None) != (self.introspection_client_secret is None):
            yield "introspection_client_id and introspection_client_secret must be set together"

    def _faults_of_keys(self) -> Iterator[str]:
        key = self.api_keys.get(ANONYMOUS.subject)
        if key is not None and key.subject is None:
            yield f"the API key {ANONYMOUS.subject!r} has the name of clients without a key: set its subject"

    def _faults_of_resource(self) -> Iterator[str]:
        if self.resource is not None and "?" in self.resource:
            yield "resource has a query: remove the part that begins with ?"
        if self.resource is None and (self.issuers or self.introspection_url or self.servers):
            yield "resource is missing: set it to the URL that clients use for this server"
        if self.introspection_url is not None and not self.servers:
            yield "authorization_servers is missing: set where clients get a token"
