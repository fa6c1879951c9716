"""In-memory clients that use tasks, and tools that run as tasks."""

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from axolotl_core import Context, NoArguments, Principal
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.task_engine import TaskRecord
from axolotl_core.tools.tool import TaskSupport
from axolotl_server import ServerHost
from axolotl_server.extensions.tasks.engines.memory_engine import MemoryTaskEngine
from tests.support.peers.memory_peer import ABLE, Peer
from tests.support.peers.task_hosts import service_of
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import Probe

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
STATUS = "notifications/tasks/status"
REQUIRED: Mapping[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
"""The data of the error that a client without the extension gets."""


def records_of(host: ServerHost) -> list[TaskRecord]:
    """Return the tasks that a server keeps in memory."""
    engine = service_of(host).engine
    assert isinstance(engine, MemoryTaskEngine)
    return list(engine._memory.read_now(engine._statements.owned(None, 0, 10_000)))


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

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        context.report_progress(1, 2)
        context.log("info", "begun")
        try:
            return await super().execute(arguments, context)
        finally:
            context.report_progress(2, 2)
            context.log("info", "over")


class TaskPeer(Peer):
    """A client that uses one of the two designs of tasks."""

    @classmethod
    async def connect(
        cls, host: ServerHost, principal: Principal = ANONYMOUS, *, capabilities: Mapping[str, Any] = ABLE
    ) -> Self:
        """Connect a client that supports tasks."""
        raise NotImplementedError

    async def start(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """Call a tool as a task and return the task."""
        raise NotImplementedError

    async def outcome(self, task_id: str) -> Any:
        """Wait for the end of a task and return the reply of its call, with a result or an error."""
        raise NotImplementedError

    async def respond(self, task_id: str, answer: Mapping[str, Any], *, key: str) -> None:
        """Wait for a question of a task and answer it."""
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


class RequestingPeer(TaskPeer):
    """A client of the revision in which clients request tasks."""

    @classmethod
    async def connect(
        cls, host: ServerHost, principal: Principal = ANONYMOUS, *, capabilities: Mapping[str, Any] = ABLE
    ) -> Self:
        return await cls(host, principal, capabilities=capabilities).shake_hands()

    async def start(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        asked = {"name": name, "arguments": arguments or {}, "task": {}, **params}
        return (await self.result("tools/call", asked))["task"]

    async def outcome(self, task_id: str) -> Any:
        return await self.ask("tasks/result", {"taskId": task_id})

    async def respond(self, task_id: str, answer: Mapping[str, Any], *, key: str) -> None:
        self.answer(await self.hear("elicitation/create"), answer)


class DirectedPeer(TaskPeer):
    """A client of the stateless revision that supports tasks."""

    def __init__(
        self, host: ServerHost, principal: Principal = ANONYMOUS, *, capabilities: Mapping[str, Any] | None = None
    ) -> None:
        known = {**ABLE, "extensions": {EXTENSION: {}}}
        super().__init__(host, principal, capabilities=known if capabilities is None else capabilities)

    @classmethod
    async def connect(
        cls, host: ServerHost, principal: Principal = ANONYMOUS, *, capabilities: Mapping[str, Any] = ABLE
    ) -> Self:
        return cls(host, principal, capabilities={**capabilities, "extensions": {EXTENSION: {}}})

    async def start(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        result = await self.result("tools/call", {"name": name, "arguments": arguments or {}, **params})
        assert result["resultType"] == "task", result
        return result

    async def outcome(self, task_id: str) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not {"result", "error"} & (state := await self.result("tasks/get", {"taskId": task_id})).keys():
                assert state["status"] in ("working", "input_required"), state
        return {member: state[member] for member in ("result", "error") if member in state}

    async def respond(self, task_id: str, answer: Mapping[str, Any], *, key: str) -> None:
        await self.until(task_id, "input_required")
        assert "result" in await self.update(task_id, **{key: answer})

    async def update(self, task_id: str, **responses: Any) -> Any:
        """Answer the questions of a task and return the reply."""
        return await self.ask("tasks/update", {"taskId": task_id, "inputResponses": responses})


DESIGNS: Mapping[str, type[TaskPeer]] = {"requested": RequestingPeer, "directed": DirectedPeer}
