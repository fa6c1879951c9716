"""Asking an issuer over HTTP: one deadline, so many bytes, and nowhere else than where it was sent."""

import asyncio
import ssl
from importlib.util import find_spec
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import msgspec

from axolotl_server.urls import check_url, is_loopback


class Unavailable(Exception):
    """What a token is judged by cannot be had; the text is for the log and holds no secret."""


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

        timeout_seconds, max_bytes, max_connections = self._limits
        return Fetcher(timeout_seconds, max_bytes, max_connections=max_connections)


class Fetcher:
    """Fetches JSON objects; redirects are not followed, since they may lead anywhere."""

    def __init__(self, timeout_seconds: float, max_bytes: int, *, max_connections: int = 4) -> None:
        self._timeout_seconds = timeout_seconds
        self._max_bytes = max_bytes
        self._places = asyncio.Semaphore(max_connections)
        limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_connections)
        context = httpx.create_ssl_context()
        self._near, self._far = (_client(context, limits, trust_env=far) for far in (False, True))

    async def get(self, url: str) -> dict[str, Any]:
        """Fetch an object.

        Raises:
            Unavailable: if there is none in time, of that size, behind that very URL.
        """
        return await self._fetch("GET", url)

    async def post(self, url: str, form: dict[str, str], authorization: str | None) -> dict[str, Any]:
        """Ask with a form, and fetch the object that answers it.

        Raises:
            Unavailable: if there is none in time, of that size, behind that very URL.
        """
        headers = {} if authorization is None else {"Authorization": authorization}
        return await self._fetch("POST", url, data=form, headers=headers)

    async def close(self) -> None:
        """Close all connections."""
        await self._near.aclose()
        await self._far.aclose()

    async def _fetch(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        place = _place(url)
        try:
            check_url(url)
            async with asyncio.timeout(self._timeout_seconds), self._places:
                body = await self._read(method, url, content)
            answer = msgspec.json.decode(body, type=dict[str, Any])
        except TimeoutError:
            raise Unavailable(f"{place} gave no answer within {self._timeout_seconds:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unavailable(f"{place} cannot be reached ({type(error).__name__})") from None
        except msgspec.DecodeError:
            raise Unavailable(f"{place} answered with something else than a JSON object") from None
        except ValueError:
            raise Unavailable(f"{place} is no address that may be asked") from None
        return answer

    async def _read(self, method: str, url: str, content: dict[str, Any]) -> bytes:
        client = self._near if is_loopback(urlsplit(url).hostname or "") else self._far
        async with client.stream(method, url, **content) as response:
            if response.status_code != httpx.codes.OK:
                raise Unavailable(f"{_place(url)} answered with the status {response.status_code}")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise Unavailable(f"{_place(url)} answered in an encoding that nobody asked for")
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > self._max_bytes:
                    raise Unavailable(f"{_place(url)} answered with more than {self._max_bytes} bytes")
            return bytes(body)


def _client(context: ssl.SSLContext, limits: httpx.Limits, *, trust_env: bool) -> httpx.AsyncClient:
    """Make a client; what is on this machine is not behind the proxy that the environment names."""
    return httpx.AsyncClient(
        verify=context,
        timeout=None,  # one deadline around everything instead
        limits=limits,
        follow_redirects=False,
        trust_env=trust_env,
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
    )


def _place(url: str) -> str:
    """Name a URL without what may be a secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
