"""In-memory clients that use tasks, and tools that run as tasks."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

from axolotl_core import NoArguments, Principal, ToolContext
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.tools.tool import TaskSupport
from axolotl_server import ServerHost
from axolotl_server.transports.stream_exchange import MemoryTransport
from tests.support.peers.wire import INITIALIZE, META, message
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import Probe

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
STATUS = "notifications/tasks/status"
ELICITATION: Mapping[str, Any] = {"elicitation": {"form": {}}}


class Job(Probe):
    """A probe with a given name that runs as a task."""

    def __init__(self, name: str = "job", support: TaskSupport = "optional", **attributes: Any) -> None:
        super().__init__()
        self.name = name
        self.task_support = support
        for attribute, value in attributes.items():
            setattr(self, attribute, value)


class Herald(Job):
    """Reports progress and logs, before and after it is released."""

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        context.report_progress(1, 2)
        context.log("info", "begun")
        try:
            return await super().execute(arguments, context)
        finally:
            context.report_progress(2, 2)
            context.log("info", "over")


class Peer:
    """An in-memory connection: replies are found by their id, other messages by their method."""

    def __init__(self, host: ServerHost, principal: Principal = ANONYMOUS) -> None:
        self.transport = MemoryTransport(host.handler, principal)
        self.replies: dict[int, Any] = {}
        self.heard: list[Any] = []
        """Messages of the server that are not replies and were not awaited yet, in their order."""
        self._ids = itertools.count(1)

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        number = next(self._ids)
        self.transport.send(message(method, self.complete(params or {}), id=number))
        return number

    def complete(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the members that every request of the revision has."""
        return params

    async def reply(self, number: int) -> Any:
        """Wait for the reply to a request."""
        while number not in self.replies:
            await self._hear()
        return self.replies.pop(number)

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and wait for its reply."""
        return await self.reply(self.send(method, params))

    async def result(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and wait for its result."""
        reply = await self.ask(method, params)
        assert "result" in reply, reply
        return reply["result"]

    async def error(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and wait for its error."""
        reply = await self.ask(method, params)
        assert "error" in reply, reply
        return reply["error"]

    async def hear(self, method: str) -> Any:
        """Wait for a notification or request of the server with this method."""
        while True:
            for place, said in enumerate(self.heard):
                if said["method"] == method:
                    return self.heard.pop(place)
            await self._hear()

    async def settle(self) -> None:
        """Read everything that the server has sent so far."""
        await self.reply(self.send("ping"))

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """Call a tool as a task and return the task."""
        raise NotImplementedError

    async def status(self, task_id: str) -> str:
        """Return the status of a task."""
        return str((await self.result("tasks/get", {"taskId": task_id}))["status"])

    async def until(self, task_id: str, status: str) -> Any:
        """Poll a task until it has a status, and return it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                task = await self.result("tasks/get", {"taskId": task_id})
                if task["status"] == status:
                    return task
                assert task["status"] in ("working", "input_required"), task

    async def close(self) -> list[Any]:
        """End the connection and return the remaining messages."""
        return [json.loads(said) for said in await self.transport.close()]

    async def _hear(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            said = json.loads(await self.transport.receive())
        if "method" in said:
            self.heard.append(said)
        else:
            self.replies[said["id"]] = said


class RequestingPeer(Peer):
    """A client of the revision in which clients request tasks."""

    @classmethod
    async def begun(
        cls,
        host: ServerHost,
        principal: Principal = ANONYMOUS,
        version: str = "2025-11-25",
        capabilities: Mapping[str, Any] = ELICITATION,
    ) -> "RequestingPeer":
        """Perform the handshake."""
        peer = cls(host, principal)
        await peer.result("initialize", {**INITIALIZE, "protocolVersion": version, "capabilities": capabilities})
        peer.transport.send(message("notifications/initialized", id=None))
        return peer

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """Request a task and return it."""
        asked = {"name": name, "arguments": arguments or {}, "task": {}, **params}
        return (await self.result("tools/call", asked))["task"]

    async def fetch(self, task_id: str) -> Any:
        """Wait for the result of a task and return the reply."""
        return await self.ask("tasks/result", {"taskId": task_id})

    def answer(self, question: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Answer a request of the server."""
        self.transport.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode())


class DirectedPeer(Peer):
    """A client of the stateless revision that supports tasks."""

    def __init__(
        self, host: ServerHost, principal: Principal = ANONYMOUS, capabilities: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(host, principal)
        known = {**ELICITATION, "extensions": {EXTENSION: {}}}
        self.capabilities = known if capabilities is None else capabilities

    def complete(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the envelope."""
        meta = {**META, CAPABILITIES_KEY: self.capabilities, **params.get("_meta", {})}
        return {**params, "_meta": meta}

    async def settle(self) -> None:
        await self.result("tools/list")

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """Call a tool that becomes a task, and return the task."""
        result = await self.result("tools/call", {"name": name, "arguments": arguments or {}, **params})
        assert result["resultType"] == "task", result
        return result

    async def update(self, task_id: str, **responses: Any) -> Any:
        """Answer the questions of a task and return the reply."""
        return await self.ask("tasks/update", {"taskId": task_id, "inputResponses": responses})
