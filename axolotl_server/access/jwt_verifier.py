"""Verification of signed tokens (JWT), with the keys of their issuers."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec
from jwt import PyJWK, PyJWT, PyJWTError, get_unverified_header
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAlgorithmError,
    InvalidSignatureError,
    MissingRequiredClaimError,
)

from axolotl_core.errors import ConfigurationError, InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.access.claims import ClaimReader
from axolotl_server.access.fetcher import MAX_RESPONSE_BYTES, HttpFetcher, Unavailable
from axolotl_server.access.gate import CLOCK_SKEW_SECONDS
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.urls import canonical, check_url, is_loopback

_REASONS: Final[tuple[tuple[type[PyJWTError], str], ...]] = (
    (ExpiredSignatureError, "the token has expired"),
    (ImmatureSignatureError, "the token is not valid yet"),
    (InvalidAlgorithmError, "the algorithm of the token's signature is not accepted"),
    (InvalidSignatureError, "the signature of the token is wrong"),
    (MissingRequiredClaimError, "the token lacks exp, iss or aud"),
    (PyJWTError, "the token is not a valid JWT"),
)
"""Texts of our own for clients, because the library's may contain the token."""


FindKey: TypeAlias = Callable[[str | None, str], Awaitable[PyJWK | bytes]]
"""Returns the key of an issuer with an ID, for an accepted algorithm; raises InvalidToken if there is none."""


def shared_secret(secret: bytes) -> FindKey:
    """Return the key of an issuer that shares a secret with this server."""

    async def find(key_id: str | None, algorithm: str) -> bytes:
        return secret

    return find


class JwtVerifier(ITokenVerifier):
    """Verifies signature, issuer, audience and lifetime; where a key is found never depends on the token."""

    def __init__(self, settings: AuthSettings, keys: Mapping[str, FindKey]) -> None:
        """Take the settings, and what finds the keys of each issuer."""
        self._keys = keys
        self._claims = ClaimReader(settings)
        self._algorithms = settings.signing_algorithms
        self._jwt = PyJWT(
            {
                "require": ["exp", "iss", "aud"],
                "verify_aud": False,  # the claim reader compares URLs in canonical form
                "enforce_minimum_key_length": True,
            }
        )

    async def verify(self, token: str) -> Principal:
        try:
            header = get_unverified_header(token)
            issuer, key_id, algorithm = self._read_unverified(token, header)
            key = await self._keys[issuer](key_id, algorithm)
            claims = self._jwt.decode(token, key, algorithms=[algorithm], issuer=issuer, leeway=CLOCK_SKEW_SECONDS)
        except PyJWTError as error:
            reason = next(text for kind, text in _REASONS if isinstance(error, kind))
            raise InvalidToken(reason) from None
        return self._claims.accept(claims, issuer, header.get("typ"))

    def _read_unverified(self, token: str, header: Mapping[str, Any]) -> tuple[str, str | None, str]:
        """Read the issuer, the key ID and the algorithm, which choose a key; none of them is proven yet."""
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._algorithms:
            raise InvalidToken("the algorithm of the token's signature is not accepted")
        claims: dict[str, Any] = self._jwt.decode(token, options={"verify_signature": False})
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._keys:
            raise InvalidToken("the issuer of the token is not accepted")
        return issuer, key_id, algorithm


LoadKeys: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
"""Loads the current JWK Set of an issuer; raises Unavailable if that is not possible."""


async def discover_keys(fetcher: HttpFetcher, issuer: str) -> dict[str, Any]:
    """Load the keys whose URL is in the metadata that an issuer publishes at a well-known URL."""
    *others, last = metadata_urls(issuer)
    for url in others:
        with suppress(Unavailable):
            metadata = await fetcher.get(url)
            break
    else:
        metadata = await fetcher.get(last)
    if not isinstance(named := metadata.get("issuer"), str) or canonical(named) != canonical(issuer):
        raise Unavailable(f"the metadata of {issuer} names another issuer")
    return await fetcher.get(keys_url(issuer, metadata))


def keys_in_file(path: Path) -> LoadKeys:
    """Load keys from a file, once right now; raises ConfigurationError if that fails."""
    try:
        _read_keys(path)
    except Unavailable as error:
        raise ConfigurationError(f"Setting auth.jwks: {error}") from None
    return lambda: asyncio.to_thread(_read_keys, path)  # disks can be slow


def _read_keys(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_RESPONSE_BYTES + 1)
        if len(content) > MAX_RESPONSE_BYTES:
            raise Unavailable(f"{path} has more than {MAX_RESPONSE_BYTES} bytes")
        return msgspec.json.decode(content, type=dict[str, Any])
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError:
        raise Unavailable(f"{path} is not a JSON object") from None


def metadata_urls(issuer: str) -> tuple[str, str, str]:
    """Return the URLs at which an issuer may publish its metadata, the most common first."""
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}/.well-known", parts.path.rstrip("/")
    return (
        f"{root}/oauth-authorization-server{path}",
        f"{root}/openid-configuration{path}",
        f"{parts.scheme}://{parts.netloc}{path}/.well-known/openid-configuration",
    )


def keys_url(issuer: str, metadata: Mapping[str, Any]) -> str:
    """Return the URL of the keys in the metadata: another machine must not send this server to its own services."""
    found = metadata.get("jwks_uri")
    try:
        url = check_url(found if isinstance(found, str) else "")
    except ValueError:
        raise Unavailable(f"the metadata of {issuer} has no jwks_uri, or not an https URL") from None
    if is_loopback(urlsplit(url).hostname or "") and not is_loopback(urlsplit(issuer).hostname or ""):
        raise Unavailable(f"the jwks_uri in the metadata of {issuer} is on this machine")
    return url


_MAX_KEYS: Final = 64
_MAX_KEY_ID_CHARACTERS: Final = 512
_RETRY_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 24 * 3600.0
"""How long outdated keys are used if no newer ones can be loaded."""

_log = logging.getLogger("axolotl")


class KeySet:
    """Finds keys by their IDs; an unknown ID makes it load the keys again, but not too often."""

    def __init__(
        self,
        load: LoadKeys,
        cache_seconds: float,
        refresh_seconds: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load_keys = load
        self._cache_seconds = cache_seconds
        self._refresh_seconds = refresh_seconds
        self._monotonic = monotonic
        self._keys: list[dict[str, Any]] | None = None
        self._parsed: dict[tuple[int, str], PyJWK] = {}
        self._outdated_at = 0.0
        self._next_load_at = 0.0
        self._loading: asyncio.Task[None] | None = None
        self._problem: str | None = None
        """Why the keys could not be loaded at the last attempt; None if they could."""

    async def ping(self) -> None:
        """Raise Unavailable if the keys could not be loaded; begin to load them if there are none or that failed."""
        if (self._keys is None or self._problem is not None) and self._may_load:
            self._start_loading()
        if self._problem is not None:
            raise Unavailable(self._problem)

    async def find(self, key_id: str | None, algorithm: str) -> PyJWK:
        """Return the key with an ID for an algorithm, or the only key if the token names none.

        Raises InvalidToken if there is no such key, and Unavailable if no keys could be loaded.
        """
        if key_id is not None and len(key_id) > _MAX_KEY_ID_CHARACTERS:
            raise InvalidToken("the key ID of the token is too long")
        age = self._monotonic() - self._outdated_at
        if self._keys is None or age >= _GRACE_SECONDS:
            self._keys = None
            await self._load()
        elif age >= 0 and self._may_load:
            self._start_loading()  # the known keys are used in the meantime
        found = self._find_loaded(key_id, algorithm)
        if found is None and self._may_load:
            await self._load()
            found = self._find_loaded(key_id, algorithm)
        if found is None:
            raise InvalidToken("the issuer does not publish the key that the token is signed with")
        return found

    async def close(self) -> None:
        """Stop loading keys."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait((self._loading,))

    @property
    def _may_load(self) -> bool:
        return self._loading is not None or self._monotonic() >= self._next_load_at

    def _start_loading(self) -> asyncio.Task[None]:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._replace_keys())
        return self._loading

    async def _load(self) -> None:
        if self._may_load:
            await asyncio.shield(self._start_loading())
        if self._keys is None:
            raise Unavailable("the keys of the issuer could not be loaded yet")

    async def _replace_keys(self) -> None:
        wait = min(_RETRY_SECONDS, self._refresh_seconds)
        try:
            self._keys = usable_keys((await self._load_keys()).get("keys"))
            self._parsed.clear()
            self._outdated_at = self._monotonic() + self._cache_seconds
            self._problem = None
            wait = self._refresh_seconds
        except Exception as error:
            self._problem = str(error) if isinstance(error, Unavailable) else type(error).__name__
            _log.warning("the keys for verifying tokens could not be loaded: %s", self._problem)
        finally:
            self._next_load_at = self._monotonic() + wait
            self._loading = None

    def _find_loaded(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """Find the key that matches; if several do, none is used."""
        matches = (self._match(index, jwk, key_id, algorithm) for index, jwk in enumerate(self._keys or ()))
        keys = [key for key in matches if key is not None]
        return keys[0] if len(keys) == 1 else None

    def _match(self, index: int, jwk: dict[str, Any], key_id: str | None, algorithm: str) -> PyJWK | None:
        if key_id is not None and jwk.get("kid") != key_id:
            return None
        if jwk.get("alg", algorithm) != algorithm:
            return None
        parsed = self._parsed.get((index, algorithm))
        if parsed is None:
            try:
                parsed = self._parsed[index, algorithm] = PyJWK(jwk, algorithm)
            except PyJWTError:
                return None
        return parsed


def usable_keys(keys: Any) -> list[dict[str, Any]]:
    """Choose the keys that may verify a signature; raises Unavailable if there are none, or far too many."""
    if not isinstance(keys, list) or len(keys) > _MAX_KEYS:
        raise Unavailable("what the issuer publishes is not a set of keys")
    usable = [key for key in keys if isinstance(key, dict) and _verifies(key)]
    if not usable:
        raise Unavailable("the issuer publishes no key that can verify signatures")
    return usable


def _verifies(key: dict[str, Any]) -> bool:
    """Tell whether a key is public and meant for signatures."""
    operations = key.get("key_ops", ["verify"])
    is_public = key.get("kty") in ("RSA", "EC", "OKP")
    return is_public and key.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
