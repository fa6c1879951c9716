"""Where the public keys of an issuer come from."""

import asyncio
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_server.identity.late_fetching import IFetcher
from axolotl_server.identity.unavailable import Unavailable
from axolotl_server.identity.urls import canonical, check_url

__all__ = ["DiscoveredKeys", "FileOfKeys", "IKeySource", "PageOfKeys"]


class IKeySource(Protocol):
    """Gives the JWK Set of an issuer as it is now."""

    async def load(self) -> dict[str, Any]:
        """Load it.

        Raises:
            Unavailable: if it cannot be had.
        """
        ...


class PageOfKeys:
    """Keys behind a URL."""

    def __init__(self, fetcher: IFetcher, url: str) -> None:
        self._fetcher = fetcher
        self._url = url

    async def load(self) -> dict[str, Any]:
        """Fetch them."""
        return await self._fetcher.get(self._url)


class DiscoveredKeys:
    """Keys whose URL stands in the metadata that an issuer has at well-known places."""

    def __init__(self, fetcher: IFetcher, issuer: str) -> None:
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
