"""Asking an issuer, without the time that it takes to load what can ask."""

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from axolotl_server.identity.fetching import Fetcher

__all__ = ["IFetcher", "LateFetcher"]


class IFetcher(Protocol):
    """Fetches JSON objects."""

    async def get(self, url: str) -> dict[str, Any]:
        """Fetch an object.

        Raises:
            Unavailable: if there is none in time, of a proper size, behind that very URL.
        """
        ...

    async def post(self, url: str, form: dict[str, str], authorization: str | None) -> dict[str, Any]:
        """Ask with a form, and fetch the object that answers it.

        Raises:
            Unavailable: if there is none in time, of a proper size, behind that very URL.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class LateFetcher:
    """Loads the HTTP client and the certificates that it trusts with the first question, beside the event loop."""

    def __init__(self, timeout_seconds: float, max_bytes: int, *, max_connections: int = 4) -> None:
        """Say how long, how much and how many at once.

        Raises:
            ModuleNotFoundError: if there is no HTTP client.
        """
        if find_spec("httpx") is None:
            raise ModuleNotFoundError("No module named 'httpx'", name="httpx")
        self._limits = timeout_seconds, max_bytes, max_connections
        self._loading = asyncio.Lock()
        self._fetcher: Fetcher | None = None

    async def get(self, url: str) -> dict[str, Any]:
        """Fetch an object."""
        return await (await self._loaded()).get(url)

    async def post(self, url: str, form: dict[str, str], authorization: str | None) -> dict[str, Any]:
        """Ask with a form, and fetch the object that answers it."""
        return await (await self._loaded()).post(url, form, authorization)

    async def close(self) -> None:
        """Close all connections."""
        if self._fetcher is not None:
            await self._fetcher.close()

    async def _loaded(self) -> "Fetcher":
        async with self._loading:
            if self._fetcher is None:
                self._fetcher = await asyncio.to_thread(self._load)
        return self._fetcher

    def _load(self) -> "Fetcher":
        from axolotl_server.identity.fetching import Fetcher

        timeout_seconds, max_bytes, max_connections = self._limits
        return Fetcher(timeout_seconds, max_bytes, max_connections=max_connections)
