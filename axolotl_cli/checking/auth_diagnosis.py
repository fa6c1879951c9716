"""The diagnosis of authentication: settings, issuers, keys, a token, the server and the policy."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from axolotl_core.errors import ConfigurationError, InvalidToken
from axolotl_core.protocol.identity import Principal
from axolotl_server.access.fetcher import HttpFetcher, Unavailable
from axolotl_server.access.gate import CLOCK_SKEW_SECONDS, metadata_url
from axolotl_server.access.verifiers import make_verifier
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.urls import canonical, is_loopback

State: TypeAlias = Literal["ok", "problem", "skipped"]
Offer: TypeAlias = Callable[[Principal], Awaitable[str]]
"""Describes what a principal sees."""

_LEAST_RSA_BITS: Final = 2048
_ROLE_NAMES: Final = ("roles", "groups", "cognito:groups", "permissions")
_FAMILIES: Final[Mapping[Any, tuple[str, ...]]] = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("Ed",)}
_SKIPPED: Final = {
    "settings": "",
    "metadata": "not needed: the keys are in the settings",
    "keys": "their URL is unknown",
    "token": "give one with --token-env",
    "server": "give its URL with --url",
    "registration": "the metadata of the issuer is unknown",
    "policy": "needs a valid token",
}


class AuthFinding(msgspec.Struct, frozen=True):
    """The result of one check."""

    check: str
    state: State
    text: str
    setting: str | None = None
    """The setting that has to change, below `auth` unless it has a section of its own."""
    code: int = 1
    """The exit code, if it is a problem: 2 for settings, 3 if nobody answers."""


class _Problem(Exception):
    def __init__(self, text: str, setting: str | None = None, code: int = 1) -> None:
        super().__init__(text)
        self.text, self.setting, self.code = text, setting, code


class AuthDiagnosis:
    """The checks of one server. Problems are findings; nothing is raised, and the token is in none of them."""

    def __init__(
        self, settings: AuthSettings, fetcher: HttpFetcher, *, url: str | None, token: str | None, offer: Offer
    ) -> None:
        self._settings = settings
        self._fetcher = fetcher
        self._url = url
        self._token = token
        self._offer = offer
        self._metadata: dict[str, dict[str, Any]] = {}
        self._principal: Principal | None = None

    async def findings(self) -> AsyncIterator[AuthFinding]:
        """Run all checks in their order; each depends only on what the ones before it have found."""
        settings = self._settings
        try:
            await make_verifier(settings).close()  # its library may be missing
        except ConfigurationError as error:
            yield AuthFinding("settings", "problem", str(error), code=2)
            return
        yield await self._result("settings", self._check_settings())
        for issuer in settings.issuers if settings.introspection_url is None else ():
            yield await self._result(f"metadata of {issuer}", self._check_metadata(issuer))
            yield await self._result(f"keys of {issuer}", self._check_keys(issuer))
        yield await self._result("token", self._check_token())
        yield await self._result("server", self._check_server())
        yield await self._result("registration", self._check_registration())
        if self._principal is None:
            yield AuthFinding("policy", "skipped", _SKIPPED["policy"])
        else:
            yield await self._result("policy", self._offer(self._principal))

    async def _result(self, name: str, check: Awaitable[str | None]) -> AuthFinding:
        try:
            text = await check
        except _Problem as problem:
            return AuthFinding(name, "problem", problem.text, problem.setting, problem.code)
        except Unavailable as error:
            setting = "issuers" if name.startswith("metadata") else None
            return AuthFinding(name, "problem", str(error), setting, code=3)
        return AuthFinding(name, "skipped" if text is None else "ok", text or _SKIPPED[name.partition(" ")[0]])

    async def _check_settings(self) -> str:
        settings = self._settings
        if not settings.is_used:
            raise _Problem("auth is not configured: set resource and issuers", "resource", 2)
        if settings.resource is None:
            raise _Problem("resource is missing: set it to the URL that clients use for this server", "resource", 2)
        parts = urlsplit(settings.resource)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise _Problem(f"{settings.resource} is not https: clients refuse it", "resource", 2)
        if self._url is not None and canonical(self._url) != canonical(settings.resource):
            raise _Problem(
                f"clients that use {self._url} refuse this server, because the resource is {settings.resource}: both "
                "must be the same",
                "resource",
                2,
            )
        return f"resource {settings.resource}, audiences {', '.join(settings.accepted_audiences)}"

    async def _check_metadata(self, issuer: str) -> str | None:
        if self._settings.hmac_secret is not None:
            return None
        from axolotl_server.access.jwt_verifier import metadata_urls  # its library may be missing

        urls = list(metadata_urls(issuer))
        for url in urls:
            try:
                found = await self._fetcher.get(url)
            except Unavailable:
                if url == urls[-1] and self._settings.jwks is None:
                    raise
                continue
            named = found.get("issuer")
            if named != issuer:
                hint = "; they differ in the slash at the end" if str(named).rstrip("/") == issuer.rstrip("/") else ""
                raise _Problem(f"{url} says that the issuer is {named!r}, the settings say {issuer!r}{hint}", "issuers")
            self._metadata[issuer] = found
            return url
        return None

    async def _check_keys(self, issuer: str) -> str | None:
        from axolotl_server.access.jwt_verifier import keys_in_file, keys_url, usable_keys

        settings = self._settings
        if settings.hmac_secret is not None:
            return f"a shared secret for {', '.join(settings.signing_algorithms)}"
        metadata = self._metadata.get(issuer)
        if settings.jwks is not None:
            is_url = "://" in settings.jwks
            loaded = await (self._fetcher.get(settings.jwks) if is_url else keys_in_file(Path(settings.jwks))())
        elif metadata is not None:
            loaded = await self._fetcher.get(keys_url(issuer, metadata))
        else:
            return None
        keys = usable_keys(loaded.get("keys"))
        faults = [fault for key in keys for fault in _faults_of(key, settings.signing_algorithms)]
        if len(faults) == len(keys):
            raise _Problem(f"no key can be used: {'; '.join(faults)}", "algorithms")
        named = ", ".join(f"{key.get('kid', 'without kid')} ({key.get('alg', key.get('kty'))})" for key in keys[:4])
        return f"{len(keys)} key{'' if len(keys) == 1 else 's'}: {named}{', …' if len(keys) > 4 else ''}"

    async def _check_token(self) -> str | None:
        if self._token is None:
            return None
        claims = claims_of(self._token)
        if self._settings.introspection_url is None:
            _check_claims(claims, self._settings)
        made = make_verifier(self._settings)
        try:
            if made.verifier is None:
                return None
            principal = await made.verifier.verify(self._token)
        except InvalidToken as error:
            raise _Problem(error.reason) from None
        finally:
            await made.close()
        missing = {*self._settings.required_scopes} - principal.scopes
        if missing:
            raise _Problem(
                f"the token lacks the scopes {' '.join(sorted(missing))}: request them, or look at scope_claims",
                "required_scopes",
            )
        self._principal = principal
        found = None if principal.roles else _role_path(claims or {}, self._settings.role_claims)
        if found is not None:
            raise _Problem(
                f"{' and '.join(self._settings.role_claims)} is empty, but the token has {found}: set "
                f'role_claims = ["{found}"]',
                "role_claims",
            )
        return f"subject {principal.subject}, scopes {_listed(principal.scopes)}, roles {_listed(principal.roles)}"

    async def _check_server(self) -> str | None:
        if self._url is None:
            return None
        status, headers = await self._fetcher.probe(self._url)
        if status == 421:
            host = urlsplit(self._url).netloc
            raise _Problem(
                f"the server does not accept the Host {host}: add it to http.allowed_hosts", "http.allowed_hosts"
            )
        if status != 401:
            raise _Problem(f"{self._url} answered a request without a token with the status {status} instead of 401")
        document = metadata_url(self._settings)
        challenge = headers.get("www-authenticate", "")
        if document is not None and f'resource_metadata="{document}"' not in challenge:
            raise _Problem(
                f"the challenge does not name {document}: {challenge or 'there is no WWW-Authenticate'}", "resource"
            )
        if document is None:
            return "401 with a challenge"
        published = await self._fetcher.get(document)
        if published.get("resource") != canonical(self._settings.resource or ""):
            raise _Problem(f"{document} says that the resource is {published.get('resource')!r}", "resource")
        return f"401 with a challenge, metadata at {document}"

    async def _check_registration(self) -> str | None:
        if not self._metadata:
            return None
        issuer, metadata = next(iter(self._metadata.items()))
        dynamic = isinstance(metadata.get("registration_endpoint"), str)
        documents = metadata.get("client_id_metadata_document_supported") is True
        methods = metadata.get("code_challenge_methods_supported")
        pkce = isinstance(methods, list) and "S256" in methods
        known = {"dynamic registration": dynamic, "client ID metadata documents": documents}
        ways = " and ".join(way for way, is_there in known.items() if is_there)
        text = f"clients can use {ways}" if ways else "register each client by hand, and give it its client ID"
        return text + ("" if pkce else f"; {issuer} does not announce PKCE with S256, so strict clients refuse it")


def claims_of(token: str) -> dict[str, Any] | None:
    """Read the claims of a token without verifying anything; None if it is not a JWT."""
    from jwt import PyJWTError, decode

    try:
        return dict(decode(token, options={"verify_signature": False}))
    except PyJWTError:
        return None


def _check_claims(claims: Mapping[str, Any] | None, settings: AuthSettings) -> None:
    """Compare the claims with the settings: where the verifier says that something is wrong, this says what."""
    if claims is None:
        raise _Problem(
            "the token is not a JWT: it is opaque, as those of Google are, or not a token at all. Set "
            "introspection_url if the issuer has one, or give the container the role token_verifier",
            "introspection_url",
        )
    issuer, now, skew = claims.get("iss"), time.time(), CLOCK_SKEW_SECONDS
    if issuer not in settings.issuers:
        near = next((one for one in settings.issuers if one.rstrip("/") == str(issuer).rstrip("/")), None)
        hint = "; they differ in the slash at the end" if near else ""
        if "sts.windows.net" in str(issuer):
            hint = (
                "; this is an Entra token of version 1: set requestedAccessTokenVersion to 2 in the manifest of the app"
            )
        raise _Problem(f"iss is {issuer!r}, the settings accept {', '.join(settings.issuers)}{hint}", "issuers")
    expires, starts = claims.get("exp"), claims.get("nbf")
    if isinstance(expires, int | float) and expires + skew < now:
        raise _Problem(f"the token expired {now - expires:.0f} seconds ago: get a new one, or compare the clocks")
    if isinstance(starts, int | float) and starts - skew > now:
        raise _Problem(f"the token is valid in {starts - now:.0f} seconds: compare the clocks")
    audience = claims.get("aud")
    if audience is None:
        hint = ""
        if "client_id" in claims:
            hint = "; it has client_id only, as those of Cognito do: request the token for a resource"
        raise _Problem(f"the token has no aud, so it could be for any server{hint}", "audiences")
    audiences = audience if isinstance(audience, list) else [audience]
    if {*map(canonical, map(str, audiences))}.isdisjoint(map(canonical, settings.accepted_audiences)):
        raise _Problem(
            f"aud is {', '.join(map(str, audiences))}, the settings accept {', '.join(settings.accepted_audiences)}: "
            "request the token for this resource, or add the value to audiences",
            "audiences",
        )


def _faults_of(key: Mapping[str, Any], algorithms: tuple[str, ...]) -> Iterator[str]:
    """Describe why a key cannot verify any signature; nothing if it can."""
    from jwt import PyJWK, PyJWTError

    name = key.get("kid", "a key without kid")
    wanted = (
        [key["alg"]] if "alg" in key else [one for one in algorithms if one[:2] in _FAMILIES.get(key.get("kty"), ())]
    )
    if not any(one in algorithms for one in wanted):
        yield f"{name} is for {key.get('alg', key.get('kty'))}, which is not in algorithms"
        return
    try:
        size = getattr(PyJWK(dict(key), wanted[0]).key, "key_size", _LEAST_RSA_BITS)
    except PyJWTError:
        yield f"{name} is not a valid key"
        return
    if key.get("kty") == "RSA" and size < _LEAST_RSA_BITS:
        yield f"{name} has {size} bits; at least {_LEAST_RSA_BITS} are needed"


def _role_path(claims: Mapping[str, Any], known: tuple[str, ...]) -> str | None:
    """Find a claim that looks like roles, directly or one level down."""
    for name, value in claims.items():
        if name in _ROLE_NAMES and name not in known and isinstance(value, list) and value:
            return name
        if isinstance(value, Mapping) and isinstance(value.get("roles"), list) and value["roles"]:
            return f"{name}.roles"
    return None


def _listed(words: frozenset[str]) -> str:
    return " ".join(sorted(words)) or "none"
