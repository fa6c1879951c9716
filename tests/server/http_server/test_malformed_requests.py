"""Requests that are not HTTP, and requests for other protocols, in a real process."""

import pytest

from tests.support.peers.wire import raw_exchange, raw_request
from tests.support.servers.server_process import answer_to, over_http

pytestmark = pytest.mark.slow

UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]


async def test_malformed_requests_leave_no_log_lines() -> None:
    """A client without a token cannot fill the log with requests that are refused before anybody sees them."""
    async with over_http() as server:
        before = server.log
        for request in (
            b"nonsense\r\n\r\n",
            raw_request(b"", UPGRADE, method="GET"),
            raw_request(b"", [], method="\0"),
        ):
            for _ in range(10):
                assert (await raw_exchange(server.port, request)).status in (400, 406)
        assert (await answer_to(server.port, "echo", {"text": "x"}))["content"][0]["text"] == "x"
        assert server.log == before
