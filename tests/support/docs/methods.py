"""The table of methods by protocol revision, with the answers of a real server."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from dependency_injector import containers, providers

from axolotl_core import prompt, resource, tool
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_core.resources.skills import ISkill
from axolotl_server import ServerHost
from tests.support.docs.tables import table
from tests.support.peers.memory_transport import MemoryTransport

_TASKS: Final = "io.modelcontextprotocol/tasks"
_EXTENDED: Final = {
    "tasks/get", "tasks/update", "tasks/cancel",
    "skills/list", "skills/get", "resources/directory/read",
}  # fmt: skip

METHODS: Final = (
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/update",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "resources/directory/read",
)


@tool(task_support="optional")
async def wait() -> None: ...


@prompt
async def speak() -> str:
    return "hello"


@resource("docs://page")
async def page() -> str:
    return "hello"


class Skill(ISkill):
    """A skill with its `SKILL.md` only."""

    uri = "skill://greet/SKILL.md"
    frontmatter: Mapping[str, Any] = {"name": "greet", "description": "Greet."}

    async def files(self) -> Mapping[str, bytes]:
        return {"SKILL.md": b"hello"}


class Container(containers.DeclarativeContainer):
    """One feature of each kind."""

    tools = providers.List(providers.Object(wait))
    prompts = providers.List(providers.Object(speak))
    resources = providers.List(providers.Object(page))
    skills = providers.List(providers.Singleton(Skill))


async def methods_table() -> str:
    """Call every method in every revision."""
    async with ServerHost(Container()) as host:
        columns = [[mark async for mark in _marks(host, revision)] for revision in REVISIONS]
    titles = ("Method", *(f"`{revision.name}`" for revision in REVISIONS))
    rows = zip((f"`{method}`" for method in METHODS), *columns, strict=True)
    return table(titles, rows)


async def _marks(host: ServerHost, revision: Revision) -> AsyncIterator[str]:
    for method in METHODS:
        transport = MemoryTransport(host.handler)
        for message in _messages(method, revision):
            transport.send(json.dumps(message).encode())
        replies = [json.loads(await transport.receive())]
        while replies[-1].get("id") != method and "subscriptionId" not in json.dumps(replies[-1]):
            replies.append(json.loads(await transport.receive()))
        await transport.close()
        yield _mark(replies[-1], method, revision)


def _messages(method: str, revision: Revision) -> Iterator[dict[str, Any]]:
    """Call a method like a client of a revision, after the handshake if there is one."""
    params: dict[str, Any] = {"notifications": {}}
    if revision.stateless:
        capabilities: dict[str, Any] = {"extensions": {_TASKS: {}}}
        params["_meta"] = {PROTOCOL_VERSION_KEY: revision.name, CLIENT_CAPABILITIES_KEY: capabilities}
    elif method == "initialize":
        params = _handshake(revision)
    else:
        yield {"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": _handshake(revision)}
        yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield {"jsonrpc": "2.0", "id": method, "method": method, "params": params}


def _handshake(revision: Revision) -> dict[str, Any]:
    info = {"name": "docs", "version": "1"}
    return {"protocolVersion": revision.name, "capabilities": {}, "clientInfo": info}


def _mark(reply: dict[str, Any], method: str, revision: Revision) -> str:
    if reply.get("error", {}).get("code") == -32601:
        return "–"
    return "extension" if revision.stateless and method in _EXTENDED else "yes"
