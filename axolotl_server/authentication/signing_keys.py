"""The public keys of one issuer, kept while they are fresh, and replaced when it has new ones."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec
from jwt import PyJWK, PyJWTError

from axolotl_core.errors import ConfigurationError, InvalidToken
from axolotl_server.authentication.fetcher import HttpFetcher, Unavailable
from axolotl_server.urls import canonical, check_url


class IKeySource(Protocol):
    """Gives the JWK Set of an issuer as it is now."""

    async def load(self) -> dict[str, Any]:
        """Load it.

        Raises:
            Unavailable: if it cannot be had.
        """
        ...


class UrlKeys:
    """Keys behind a URL."""

    def __init__(self, fetcher: HttpFetcher, url: str) -> None:
        self._fetcher = fetcher
        self._url = url

    async def load(self) -> dict[str, Any]:
        """Fetch them."""
        return await self._fetcher.get(self._url)


class DiscoveredKeys:
    """Keys whose URL stands in the metadata that an issuer has at well-known places."""

    def __init__(self, fetcher: HttpFetcher, issuer: str) -> None:
        self._fetcher = fetcher
        self._issuer = issuer

    async def load(self) -> dict[str, Any]:
        """Fetch the metadata, then the keys."""
        metadata = await self._metadata()
        if not isinstance(named := metadata.get("issuer"), str) or canonical(named) != canonical(self._issuer):
            raise Unavailable(f"the metadata of {self._issuer} is that of another issuer")
        url = metadata.get("jwks_uri")
        try:
            return await self._fetcher.get(check_url(url if isinstance(url, str) else ""))
        except ValueError:
            raise Unavailable(f"the metadata of {self._issuer} has no jwks_uri that may be asked") from None

    async def _metadata(self) -> dict[str, Any]:
        """Try one place after the other; the failure of the last one is told."""
        first, *others = _places(self._issuer)
        for place in (first, *others[:-1]):
            try:
                return await self._fetcher.get(place)
            except Unavailable:
                continue
        return await self._fetcher.get(others[-1])


class FileOfKeys:
    """Keys in a file."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Read them once to see that they are there.

        Raises:
            ConfigurationError: if they are not.
        """
        self._path = path
        self._max_bytes = max_bytes
        try:
            self._read()
        except Unavailable as error:
            raise ConfigurationError(f"Setting auth.jwks_file: {error}") from None

    async def load(self) -> dict[str, Any]:
        """Read the file, in a thread: disks can be slow."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                content = file.read(self._max_bytes + 1)
            if len(content) > self._max_bytes:
                raise Unavailable(f"{self._path} has more than {self._max_bytes} bytes")
            return msgspec.json.decode(content, type=dict[str, Any])
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}") from None
        except msgspec.DecodeError:
            raise Unavailable(f"{self._path} is no JSON object") from None


def _places(issuer: str) -> tuple[str, str, str]:
    """Give the places where an issuer may have its metadata, in the order in which they are usual."""
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}/.well-known", parts.path.rstrip("/")
    return (
        f"{root}/oauth-authorization-server{path}",
        f"{root}/openid-configuration{path}",
        f"{parts.scheme}://{parts.netloc}{path}/.well-known/openid-configuration",
    )


_MOST_KEYS: Final = 64
_LONGEST_NAME: Final = 512
_RETRY_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 24 * 3600.0
"""How long keys do that should have been fetched anew, while that is not possible."""

_log = logging.getLogger("axolotl")


class KeySet:
    """Finds a key by its name; one that it does not know makes it look for new keys, but not again and again."""

    def __init__(
        self,
        source: IKeySource,
        cache_seconds: float,
        refresh_seconds: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._cache_seconds = cache_seconds
        self._refresh_seconds = refresh_seconds
        self._monotonic = monotonic
        self._keys: list[dict[str, Any]] | None = None
        self._ready: dict[tuple[int, str], PyJWK] = {}
        self._stale_at = 0.0
        self._next_look = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def find(self, name: str | None, algorithm: str) -> PyJWK:
        """Give the key that a token names, for an algorithm; where it names none, the only one there is.

        Raises:
            InvalidToken: if there is no such key.
            Unavailable: if there are no keys at all yet.
        """
        if name is not None and len(name) > _LONGEST_NAME:
            raise InvalidToken("the name of the token's key is too long")
        age = self._monotonic() - self._stale_at
        if self._keys is None or age >= _GRACE_SECONDS:
            self._keys = None
            await self._look()
        elif age >= 0 and self._may_look:
            self._begin()  # those that are known do meanwhile
        found = self._known(name, algorithm)
        if found is None and self._may_look:
            await self._look()
            found = self._known(name, algorithm)
        if found is None:
            raise InvalidToken("the token is signed with a key that its issuer does not publish")
        return found

    async def close(self) -> None:
        """Stop looking for keys."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))

    @property
    def _may_look(self) -> bool:
        return self._looking is not None or self._monotonic() >= self._next_look

    def _begin(self) -> asyncio.Task[None]:
        """Look for keys, once for all who wait."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._load())
        return self._looking

    async def _look(self) -> None:
        """Wait for new keys.

        Raises:
            Unavailable: if there are neither new nor old ones.
        """
        if self._may_look:
            await asyncio.shield(self._begin())
        if self._keys is None:
            raise Unavailable("the keys of the issuer are not known yet")

    async def _load(self) -> None:
        wait = min(_RETRY_SECONDS, self._refresh_seconds)
        try:
            self._keys = _usable((await self._source.load()).get("keys"))
            self._ready.clear()
            self._stale_at = self._monotonic() + self._cache_seconds
            wait = self._refresh_seconds
        except Unavailable as error:
            _log.warning("the keys that tokens are verified with cannot be had: %s", error)
        except Exception as error:
            _log.warning("the keys that tokens are verified with cannot be had: %s", type(error).__name__)
        finally:
            self._next_look = self._monotonic() + wait
            self._looking = None

    def _known(self, name: str | None, algorithm: str) -> PyJWK | None:
        """Find the one key that fits; two are as good as none."""
        fitting = [key for index, jwk in enumerate(self._keys or ()) if (key := self._key(index, jwk, name, algorithm))]
        return fitting[0] if len(fitting) == 1 else None

    def _key(self, index: int, jwk: dict[str, Any], name: str | None, algorithm: str) -> PyJWK | None:
        """Make a key ready for an algorithm, once, if it may be used with it."""
        if name is not None and jwk.get("kid") != name:
            return None
        if jwk.get("alg", algorithm) != algorithm:
            return None
        ready = self._ready.get((index, algorithm))
        if ready is None:
            try:
                ready = self._ready[index, algorithm] = PyJWK(jwk, algorithm)
            except PyJWTError:
                return None
        return ready


def _usable(keys: Any) -> list[dict[str, Any]]:
    """Choose the keys that may verify a signature.

    Raises:
        Unavailable: if there are none, or far too many.
    """
    if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
        raise Unavailable("what the issuer publishes is no set of keys")
    usable = [key for key in keys if isinstance(key, dict) and _verifies(key)]
    if not usable:
        raise Unavailable("the issuer publishes no key that could verify a signature")
    return usable


def _verifies(key: dict[str, Any]) -> bool:
    """Tell whether a key is public, and for signatures; a symmetric one is neither."""
    operations = key.get("key_ops", ["verify"])
    is_public = key.get("kty") in ("RSA", "EC", "OKP")
    return is_public and key.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
