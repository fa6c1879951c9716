"""A recorder of a client's HTTP requests."""

import asyncio
from typing import Any

import httpx2

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)


class Wire:
    """Records the requests of one connection, and when the server has opened the stream of a session."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self.listening = asyncio.Event()

    def http_client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **options: Any,
    ) -> httpx2.AsyncClient:
        """Return the HTTP client for a library."""
        hooks: dict[str, list[Any]] = {"request": [self._note], "response": [self._look]}
        return httpx2.AsyncClient(headers=headers, timeout=timeout or _TIMEOUT, auth=auth, event_hooks=hooks, **options)

    @property
    def returns(self) -> list[str]:
        """The event ids from which the client resumed."""
        ids = [request.headers.get("last-event-id") for request in self.requests if request.method == "GET"]
        return [last for last in ids if last]

    async def _note(self, request: httpx2.Request) -> None:
        self.requests.append(request)

    async def _look(self, response: httpx2.Response) -> None:
        if response.request.method == "GET" and response.status_code == 200:
            self.listening.set()
