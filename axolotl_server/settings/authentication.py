"""The section `auth`: whose tokens are accepted over HTTP, and what is read out of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.settings.section import Section
from axolotl_server.urls import check_url

SigningAlgorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"
]

_BY_PUBLIC_KEY: tuple[SigningAlgorithm, ...] = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)


def _url(value: str) -> str:
    try:
        return check_url(value)
    except ValueError as error:
        raise PydanticCustomError("url", "{text}", {"text": str(error)}) from None


_Url = Annotated[str, AfterValidator(_url)]
_Scope = Annotated[str, StringConstraints(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]
_Name = Annotated[str, StringConstraints(min_length=1)]
_KeyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class ApiKeySettings(Section):
    """A key that is a bearer token of its own; `axolotl auth hash-key` makes one."""

    hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    """The digest of the key; the key itself is nowhere."""
    subject: _Name | None = None
    """On whose behalf its holder acts; the name of the key unless it is said."""
    tenant: str | None = None
    """The tenant its holder belongs to."""
    scopes: frozenset[_Scope] = frozenset()
    """What the key is good for."""
    roles: frozenset[str] = frozenset()
    """The roles of its holder."""

    @field_validator("subject")
    @classmethod
    def _refuse_anonymous(cls, subject: str | None) -> str | None:
        if subject == ANONYMOUS.subject:
            raise PydanticCustomError("subject", "{text}", {"text": f"{subject!r} is the name of those without a key"})
        return subject

    def principal(self, name: str) -> Principal:
        """Give the principal behind the key of this name."""
        return Principal(self.subject or name, self.tenant, self.scopes, self.roles)


class AuthSettings(Section):
    """Bearer tokens over HTTP; everybody is anonymous unless issuers, introspection, keys or a verifier are given."""

    resource: _Url | None = None
    """The URL of this server as clients know it."""
    issuers: tuple[_Url, ...] = ()
    """Who may have signed a token, exactly as its `iss` says."""
    audiences: tuple[_Name, ...] = ()
    """What `aud` may say; the resource unless it is said."""
    authorization_servers: tuple[_Url, ...] = ()
    """Where clients are sent for a token; the issuers unless it is said."""
    jwks_url: _Url | None = None
    """Where the issuer's public keys are; found through its metadata unless it is said here or in `jwks_file`."""
    jwks_file: Path | None = None
    """A file with the issuer's public keys; it is read again as often as one behind a URL would be."""
    hmac_secret: SecretStr | None = None
    """A secret shared with the issuer, in the place of public keys."""
    algorithms: tuple[SigningAlgorithm, ...] = ()
    """How a token may be signed: in all ways with public keys, or HS256 with a shared secret, unless it is said."""
    clock_skew_seconds: float = Field(30.0, ge=0, le=300)
    """How far the clocks of the issuer and of this machine may be apart."""
    required_scopes: tuple[_Scope, ...] = ()
    """What every token must be good for."""
    subject_claim: _Name = "sub"
    """The claim that names the subject; a dot leads into an object, as in `realm_access.roles`."""
    scope_claims: tuple[_Name, ...] = ("scope", "scp")
    """The claims that hold scopes, as a text or a list."""
    role_claims: tuple[_Name, ...] = ("roles",)
    """The claims that hold roles."""
    tenant_claim: _Name | None = None
    """The claim that names the tenant; there is none unless it is said."""
    introspection_url: _Url | None = None
    """Who is asked about each token, in the place of a signature."""
    introspection_client_id: _Name | None = None
    """As whom this server asks."""
    introspection_client_secret: SecretStr | None = None
    """The secret with which it asks."""
    api_keys: dict[_KeyName, ApiKeySettings] = Field({})
    """By a name of your choice."""
    token_cache_size: int = Field(10_000, ge=0)
    """How many accepted tokens are remembered; their times are checked with every request."""
    token_cache_seconds: float | None = Field(None, ge=0)
    """For how long they are remembered."""
    timeout_seconds: PositiveFloat = 2.0
    """How long it may take to fetch keys, or to ask about a token; beyond that a request is refused with 503."""
    fetch_max_bytes: PositiveInt = 256 * 1024
    """The largest answer that is read from an issuer."""
    jwks_cache_seconds: PositiveFloat = 3600.0
    """When public keys are fetched anew."""
    jwks_refresh_seconds: PositiveFloat = 30.0
    """How often, at most, a token with an unknown key makes us look for new ones."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = [*self._faults_of_signatures(), *self._faults_of_introspection(), *self._faults_of_resource()]
        if faults:
            raise PydanticCustomError("auth", "{text}", {"text": "; ".join(faults)})
        return self

    @property
    def is_used(self) -> bool:
        """Whether anything is said: then nobody gets in without a token, even if what is said is not enough."""
        return self != AuthSettings()

    @property
    def signing_algorithms(self) -> tuple[SigningAlgorithm, ...]:
        """How a token may be signed."""
        return self.algorithms or (_BY_PUBLIC_KEY if self.hmac_secret is None else ("HS256",))

    @property
    def accepted_audiences(self) -> tuple[str, ...]:
        """What a token may be meant for."""
        return self.audiences or (() if self.resource is None else (self.resource,))

    @property
    def servers(self) -> tuple[str, ...]:
        """Where clients are sent for a token."""
        return self.authorization_servers or self.issuers

    def _faults_of_signatures(self) -> Iterator[str]:
        places = [name for name in ("jwks_url", "jwks_file", "hmac_secret") if getattr(self, name) is not None]
        if len(places) > 1:
            yield f"{' and '.join(places)} are two places for keys: keep one"
        if places and not self.issuers:
            yield f"{places[0]} needs issuers: say who signs"
        if places and len(self.issuers) > 1:
            yield f"{places[0]} is for one issuer: with several, each is asked for its own keys"
        shared = [name for name in self.algorithms if name.startswith("HS")]
        if shared and self.hmac_secret is None:
            yield f"{', '.join(shared)} needs hmac_secret, and goes with no public keys"
        if self.hmac_secret is not None:
            yield from self._faults_of_secret(self.hmac_secret.get_secret_value())

    def _faults_of_secret(self, secret: str) -> Iterator[str]:
        public = [name for name in self.algorithms if not name.startswith("HS")]
        if public:
            yield f"{', '.join(public)} needs public keys, and goes with no hmac_secret"
        longest = max(int(name[2:]) // 8 for name in ("HS256", *self.algorithms) if name.startswith("HS"))
        if len(secret.encode()) < longest:
            yield f"hmac_secret must have at least {longest} bytes"

    def _faults_of_introspection(self) -> Iterator[str]:
        if self.introspection_url is None:
            if self.introspection_client_id is not None or self.introspection_client_secret is not None:
                yield "introspection_client_id and introspection_client_secret need introspection_url"
            return
        if self.jwks_url is not None or self.jwks_file is not None or self.hmac_secret is not None:
            yield "introspection_url and keys are two ways to verify a token: keep one"
        if (self.introspection_client_id is None) != (self.introspection_client_secret is None):
            yield "introspection_client_id and introspection_client_secret go together"

    def _faults_of_resource(self) -> Iterator[str]:
        if self.resource is not None and "?" in self.resource:
            yield "resource has a query: leave out what begins with ?"
        if self.resource is None and (self.issuers or self.introspection_url or self.servers):
            yield "resource is missing: say the URL by which clients know this server"
        if self.introspection_url is not None and not self.servers:
            yield "authorization_servers is missing: say where clients get a token"
