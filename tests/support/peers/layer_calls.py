"""Calls for tests of layers: created directly, or by a client with a handshake."""

import asyncio
import json
from collections.abc import Mapping
from time import monotonic
from typing import Any

from axolotl_core import CancelReason, ITool, Limits, Principal, ToolCall, ToolSpec
from axolotl_core.calls.context import NOBODY, ICaller
from axolotl_core.layers import Invoke
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from axolotl_server.transports.stream_exchange import MemoryTransport
from tests.support.peers.wire import INITIALIZE, call, message
from tests.support.servers.serving import PATIENCE_SECONDS

ASKABLE: Mapping[str, Any] = {"elicitation": {"form": {}}}


def spec_of(tool: ITool[Any, Any], **limits: Any) -> ToolSpec:
    """Create the spec of a tool with plain limits."""
    plain: dict[str, Any] = {
        "timeout_seconds": PATIENCE_SECONDS,
        "max_concurrency": None,
        "execution": "loop",
        "coerce_arguments": False,
    }
    return ToolSpec.of(tool, Limits(**{**plain, **limits}))


class HandCall:
    """A call of a wrapped tool in a separate task, which can be stopped like the server does."""

    def __init__(
        self,
        invoke: Invoke,
        spec: ToolSpec,
        arguments: Mapping[str, Any] | None = None,
        *,
        principal: Principal = ANONYMOUS,
        caller: ICaller = NOBODY,
        seconds: float | None = None,
    ) -> None:
        raw = json.dumps(arguments or {}).encode()
        self.task: asyncio.Task[Any] = asyncio.ensure_future(self._run(invoke))
        self.call = ToolCall(0, caller, principal, spec=spec, raw=raw, task=self.task)
        self.call.arguments = spec.tool.argument_parser(coerce=False)(raw)
        self.call.deadline = None if seconds is None else monotonic() + seconds

    async def _run(self, invoke: Invoke) -> Any:
        return await invoke(self.call)

    def stop(self, reason: CancelReason = CancelReason.CLIENT) -> None:
        self.call.stop(reason)

    async def outcome(self) -> Any:
        """Wait for its result or exception."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return (await asyncio.gather(self.task, return_exceptions=True))[0]


class HandshakeClient:
    """A client with a handshake, in the same process."""

    def __init__(self, host: ServerHost, **capabilities: Any) -> None:
        self._transport = MemoryTransport(host.handler)
        self._capabilities = capabilities

    async def begin(self) -> None:
        """Perform the handshake."""
        self._transport.send(message("initialize", {**INITIALIZE, "capabilities": self._capabilities}, id=0))
        await self.hear()
        self._transport.send(message("notifications/initialized", id=None))

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, id: int = 1) -> None:
        self._transport.send(call(name, arguments, id=id, handshake=True))

    def cancel(self, id: int) -> None:
        """Cancel a call."""
        self._transport.send(message("notifications/cancelled", {"requestId": id}, id=None))

    def answer(self, id: Any, result: Mapping[str, Any]) -> None:
        """Answer a question of the server."""
        self._transport.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode())

    async def hear(self) -> Any:
        """Wait for the next message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return json.loads(await self._transport.receive())

    async def close(self) -> list[Any]:
        """End the connection and return the remaining messages."""
        return [json.loads(reply) for reply in await self._transport.close()]
