"""Connected clients of both libraries, with the same interface."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import fastmcp
import mcp
from mcp import ClientSession
from mcp_types import (
    LOG_LEVEL_META_KEY,
    CallToolResult,
    Completion,
    GetPromptResult,
    LoggingLevel,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    TextContent,
    Tool,
)

from tests.support.clients.client_routes import Way
from tests.support.clients.http_recorder import Wire
from tests.support.clients.simulated_user import Person, Progress
from tests.support.clients.task_extension import TaskExtension

Reference: TypeAlias = PromptReference | ResourceTemplateReference


class IPeer(ABC):
    """A connected client, with its simulated user."""

    def __init__(self, way: Way, person: Person, wire: Wire, tasks: TaskExtension) -> None:
        self.way = way
        self.person = person
        self.wire = wire
        self.tasks = tasks
        self.meta: dict[str, Any] = {}
        """The `_meta` of every call."""

    def refresh(self) -> None:
        """Reset everything that earlier tests left."""
        self.person.reset()
        self.tasks.states.clear()
        self.meta.clear()

    @property
    @abstractmethod
    def session(self) -> ClientSession:
        """The session that both libraries use."""

    @abstractmethod
    async def tools(self) -> Sequence[Tool]:
        """List all tools."""

    @abstractmethod
    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        progress: Progress | None = None,
        patience: float | None = None,
    ) -> CallToolResult:
        """Call a tool, with a timeout of `patience` seconds."""

    @abstractmethod
    async def prompts(self) -> Sequence[Prompt]:
        """List all prompts."""

    @abstractmethod
    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> GetPromptResult:
        """Get a prompt."""

    @abstractmethod
    async def resources(self) -> Sequence[Resource]:
        """List all resources."""

    @abstractmethod
    async def templates(self) -> Sequence[ResourceTemplate]:
        """List all templates of resources."""

    @abstractmethod
    async def read(self, uri: str) -> ReadResourceResult:
        """Read a resource."""

    @abstractmethod
    async def complete(
        self, reference: Reference, argument: str, value: str, known: dict[str, str] | None = None
    ) -> Completion:
        """Complete an argument."""

    async def text_of(self, name: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool and return its text."""
        result = await self.call(name, arguments)
        (block,) = result.content
        assert isinstance(block, TextContent)
        return block.text

    async def want_logs(self, level: LoggingLevel) -> None:
        """Set the level of log messages."""
        if self.way.stateless:
            self.meta[LOG_LEVEL_META_KEY] = level
        else:
            await self.set_level(level)

    @abstractmethod
    async def set_level(self, level: LoggingLevel) -> None:
        """Send the request that sets the level for a connection."""


class OfficialPeer(IPeer):
    """The official client."""

    def __init__(self, way: Way, person: Person, wire: Wire, tasks: TaskExtension, client: mcp.Client) -> None:
        super().__init__(way, person, wire, tasks)
        self.client = client

    @property
    def session(self) -> ClientSession:
        return self.client.session

    async def tools(self) -> Sequence[Tool]:
        return (await self.client.list_tools()).tools

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        progress: Progress | None = None,
        patience: float | None = None,
    ) -> CallToolResult:
        meta: Any = self.meta or None
        return await self.client.call_tool(name, arguments, patience, progress, meta=meta)

    async def prompts(self) -> Sequence[Prompt]:
        return (await self.client.list_prompts()).prompts

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> GetPromptResult:
        return await self.client.get_prompt(name, arguments)

    async def resources(self) -> Sequence[Resource]:
        return (await self.client.list_resources()).resources

    async def templates(self) -> Sequence[ResourceTemplate]:
        return (await self.client.list_resource_templates()).resource_templates

    async def read(self, uri: str) -> ReadResourceResult:
        return await self.client.read_resource(uri)

    async def complete(
        self, reference: Reference, argument: str, value: str, known: dict[str, str] | None = None
    ) -> Completion:
        result = await self.client.complete(reference, {"name": argument, "value": value}, known)
        return result.completion

    async def set_level(self, level: LoggingLevel) -> None:
        await self.client.set_logging_level(level)


class FastPeer(IPeer):
    """FastMCP's client."""

    def __init__(self, way: Way, person: Person, wire: Wire, tasks: TaskExtension, client: fastmcp.Client[Any]) -> None:
        super().__init__(way, person, wire, tasks)
        self.client = client

    @property
    def session(self) -> ClientSession:
        return self.client.session

    async def tools(self) -> Sequence[Tool]:
        return await self.client.list_tools()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        progress: Progress | None = None,
        patience: float | None = None,
    ) -> CallToolResult:
        return await self.client.call_tool_mcp(name, arguments or {}, progress, patience, self.meta or None)

    async def prompts(self) -> Sequence[Prompt]:
        return await self.client.list_prompts()

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> GetPromptResult:
        return await self.client.get_prompt(name, arguments)

    async def resources(self) -> Sequence[Resource]:
        return await self.client.list_resources()

    async def templates(self) -> Sequence[ResourceTemplate]:
        return await self.client.list_resource_templates()

    async def read(self, uri: str) -> ReadResourceResult:
        return await self.client.read_resource_mcp(uri)

    async def complete(
        self, reference: Reference, argument: str, value: str, known: dict[str, str] | None = None
    ) -> Completion:
        return await self.client.complete(reference, {"name": argument, "value": value}, known)

    async def set_level(self, level: LoggingLevel) -> None:
        await self.client.set_logging_level(level)
