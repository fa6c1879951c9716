"""A client in the same process: the real pipeline without a wire, for tests and the command line."""

import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from dependency_injector import containers

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server.handler import DefaultHandler
from axolotl_server.host import ServerHost
from axolotl_server.transports.memory import MemoryTransport

__all__ = ["CallOutcome", "InProcessClient", "RemoteError", "connect"]


class RemoteError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a tool answered."""

    content: Sequence[Mapping[str, Any]]
    structured: Any
    is_error: bool
    meta: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


class InProcessClient:
    """Speaks the stateless revision to a handler, one request at a time."""

    def __init__(self, handler: DefaultHandler, principal: Principal = ANONYMOUS) -> None:
        self._transport = MemoryTransport(handler, principal)
        self._ids = itertools.count(1)

    async def list_tools(self) -> list[dict[str, Any]]:
        """List all tools, page by page."""
        tools: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = await self.request("tools/list", params)
            tools += result["tools"]
            if "nextCursor" not in result:
                return tools
            params = {"cursor": result["nextCursor"]}

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: Callable[[Mapping[str, Any]], object] | None = None,
    ) -> CallOutcome:
        """Call a tool.

        Raises:
            RemoteError: if the server refuses the request itself, as for a name that no tool has.
        """
        params = {"name": name, "arguments": arguments or {}}
        result = await self.request("tools/call", params, on_progress=on_progress)
        return CallOutcome(
            result["content"], result.get("structuredContent"), result.get("isError", False), result["_meta"]
        )

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        on_progress: Callable[[Mapping[str, Any]], object] | None = None,
    ) -> Any:
        """Send a request and wait for its result.

        Raises:
            RemoteError: if the answer is an error.
        """
        number = next(self._ids)
        meta: dict[str, Any] = {PROTOCOL_VERSION_KEY: LATEST_STATELESS_REVISION.name, CLIENT_CAPABILITIES_KEY: {}}
        if on_progress is not None:
            meta["progressToken"] = number
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
        self._transport.send(encode(message))
        while True:
            reply = msgspec.json.decode(await self._transport.receive())
            if reply.get("method") == "notifications/progress" and on_progress is not None:
                on_progress(reply["params"])
            elif reply.get("id") == number:
                return _result_of(reply)

    async def close(self) -> None:
        """End the connection."""
        await self._transport.close()


@asynccontextmanager
async def connect(
    container: containers.Container,
    *,
    settings: Mapping[str, Any] | None = None,
    toolsets: Sequence[str] = (),
    principal: Principal = ANONYMOUS,
) -> AsyncIterator[InProcessClient]:
    """Start a container's server and talk to it; `settings` has the form of the settings file."""
    async with ServerHost(container, flags=settings, toolsets=toolsets) as host:
        client = InProcessClient(host.handler, principal)
        try:
            yield client
        finally:
            await client.close()


def _result_of(reply: Mapping[str, Any]) -> Any:
    if "error" in reply:
        error = reply["error"]
        raise RemoteError(error["code"], error["message"], error.get("data"))
    return reply["result"]
