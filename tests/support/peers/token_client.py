"""A client with a handshake and a token."""

import httpx2

from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, message
from tests.support.servers.authenticated_server import bearer
from tests.support.servers.serving import HttpServer


class Holder:
    """A client with a session and a changing token."""

    def __init__(self, http: httpx2.AsyncClient, server: HttpServer) -> None:
        self._http = http
        self._server = server
        self._session: dict[str, str] = {}

    async def send(self, token: str | None, body: bytes | None, method: str = "POST") -> httpx2.Response:
        """Send a request in the session."""
        headers = {**JSON_HEADERS, **self._session}
        if token is not None:
            headers |= dict([bearer(token)])
        return await self._http.request(method, self._server.url, content=body, headers=headers)

    async def begin(self, token: str, version: str = str(INITIALIZE["protocolVersion"])) -> None:
        """Perform the handshake."""
        reply = await self.send(token, message("initialize", {**INITIALIZE, "protocolVersion": version}))
        assert reply.status_code == 200, reply.text
        self._session = {"Mcp-Session-Id": reply.headers["mcp-session-id"], "MCP-Protocol-Version": version}
        await self.send(token, message("notifications/initialized", id=None))
