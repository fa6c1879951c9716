"""HTTP requests to token issuers: one deadline, a limited size, no redirects."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from axolotl_core.errors import AxolotlError
from axolotl_server.urls import check_url, is_loopback, without_secrets

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


class Unavailable(AxolotlError):
    """A token cannot be verified now; the text is for the log and contains no secret."""


MAX_RESPONSE_BYTES: Final = 256 * 1024
"""The maximum size of a response from an issuer."""


class HttpFetcher:
    """Fetches JSON objects; every method raises Unavailable if there is none in time, of a valid size, at that URL.

    The first request loads the HTTP library and the trusted certificates, in a thread: that takes most of a second.
    """

    def __init__(
        self, timeout_seconds: float, max_bytes: int = MAX_RESPONSE_BYTES, *, max_connections: int = 4
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._max_bytes = max_bytes
        self._max_connections = max_connections
        self._free_connections = asyncio.Semaphore(max_connections)
        self._loading = asyncio.Lock()
        self._clients: tuple[AsyncClient, AsyncClient] | None = None
        """One client for this machine, which is never behind a proxy, and one for all other addresses."""

    async def get(self, url: str) -> dict[str, Any]:
        """Fetch an object."""
        return await self._fetch("GET", url)

    async def post(self, url: str, form: dict[str, str], authorization: str | None) -> dict[str, Any]:
        """Send a form and return the object in the response."""
        headers = {} if authorization is None else {"Authorization": authorization}
        return await self._fetch("POST", url, data=form, headers=headers)

    async def probe(self, url: str) -> tuple[int, Mapping[str, str]]:
        """Send an empty message without a token; return the status and the headers of the response."""
        status, headers, _ = await self._send("POST", url, is_probe=True, json={})
        return status, headers

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients or ():
            await client.aclose()

    async def _fetch(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        _, _, body = await self._send(method, url, is_probe=False, **content)
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            raise Unavailable(f"{without_secrets(url)} answered with something that is not a JSON object") from None

    async def _send(
        self, method: str, url: str, *, is_probe: bool, **content: Any
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self._loading:
            if self._clients is None:
                self._clients = await asyncio.to_thread(self._make_clients)
        import httpx2  # loaded by now

        local, remote = self._clients
        place = without_secrets(url)
        try:
            check_url(url)
            client = local if is_loopback(urlsplit(url).hostname or "") else remote
            request, limit = client.stream(method, url, **content), asyncio.timeout(self._timeout_seconds)
            async with limit, self._free_connections, request as response:
                body = b"" if is_probe else await self._read(response, place)
                return response.status_code, dict(response.headers), body
        except TimeoutError:
            raise Unavailable(f"{place} gave no answer within {self._timeout_seconds:g} seconds") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise Unavailable(f"{place} cannot be reached ({type(error).__name__})") from None
        except ValueError:
            raise Unavailable(f"{place} is not an allowed address: use https, or http on this machine") from None

    async def _read(self, response: "Response", place: str) -> bytes:
        if response.status_code != 200:
            raise Unavailable(f"{place} answered with the status {response.status_code}")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Unavailable(f"{place} answered in an encoding that was not requested")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > self._max_bytes:
                raise Unavailable(f"{place} answered with more than {self._max_bytes} bytes")
        return bytes(body)

    def _make_clients(self) -> "tuple[AsyncClient, AsyncClient]":
        import httpx2

        limits = httpx2.Limits(max_connections=self._max_connections, max_keepalive_connections=self._max_connections)
        context = httpx2.create_ssl_context()
        make = partial(
            httpx2.AsyncClient,
            verify=context,
            timeout=None,  # one deadline for the whole request instead
            limits=limits,
            follow_redirects=False,  # they may lead anywhere
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )
        return make(trust_env=False), make(trust_env=True)
