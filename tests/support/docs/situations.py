"""The table of error responses by protocol revision, with the answers of a real server."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import httpx2
from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ToolError, prompt, resource, tool, tools_of
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_server import HttpApp, ServerHost
from tests.support.docs.tables import table

_HEADERS: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

_LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@tool
async def add(a: int, b: int) -> int:
    return a + b


@tool
async def refuse() -> str:
    raise ToolError("no")


@tool
async def crash() -> str:
    raise ZeroDivisionError


@tool(timeout_seconds=0.01)
async def wait() -> None:
    await asyncio.Event().wait()


class Name(BaseModel):
    """A form with one field."""

    name: str


@tool
async def inquire(context: Context) -> str:
    return (await context.ask(Name, "Who?")).name


@prompt
async def letter(number: int, context: Context) -> str:
    if number == 0:
        raise ToolError("no")
    if number == 1:
        raise ZeroDivisionError
    return (await context.ask(Name, "Who?")).name


@resource("docs://{number}")
async def page(number: int) -> str:
    if number == 0:
        raise ToolError("no")
    raise ZeroDivisionError


class Gate:
    """A tool that signals when it runs, and waits until it may end."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    @tool(max_concurrency=1)
    async def lonely(self) -> None:
        self.entered.set()
        await self.opened.wait()


class Container(containers.DeclarativeContainer):
    """Tools, prompts and resources that fail in every way."""

    gate = providers.Singleton(Gate)
    tools = providers.List(
        providers.Object(add),
        providers.Object(refuse),
        providers.Object(crash),
        providers.Object(wait),
        providers.Object(inquire),
        providers.Callable(tools_of, gate),
    )
    prompts = providers.List(providers.Object(letter))
    resources = providers.List(providers.Object(page))


@dataclass
class Client:
    """A client of one revision."""

    http: httpx2.AsyncClient
    revision: Revision
    gate: Gate
    session: dict[str, str] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def open(self) -> None:
        """Perform the handshake, if the revision has one."""
        if self.revision.stateless:
            return
        await self.begin()
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def begin(self) -> None:
        """Perform the handshake without confirming it."""
        params = {
            "protocolVersion": self.revision.name,
            "capabilities": {},
            "clientInfo": {"name": "docs", "version": "1"},
        }
        self.session = {}
        reply = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.session = {
            "mcp-session-id": reply.headers["mcp-session-id"],
            "mcp-protocol-version": self.revision.name,
        }

    async def call(self, name: str, arguments: Any = None) -> httpx2.Response:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}})

    async def request(self, method: str, params: Mapping[str, Any], **changes: Any) -> httpx2.Response:
        """Send a valid request, with `changes` to its headers."""
        headers = dict(self.session)
        if self.revision.stateless:
            own = {PROTOCOL_VERSION_KEY: self.revision.name, CLIENT_CAPABILITIES_KEY: {}}
            params = {**params, "_meta": {**own, **params.get("_meta", {})}}
            headers = {"mcp-protocol-version": self.revision.name, "mcp-method": method}
            named = params.get("name", params.get("uri"))
            headers |= {} if named is None else {"mcp-name": named}
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        changed = {name.replace("_", "-"): value for name, value in changes.items()}
        return await self.http.post("/mcp", headers=_HEADERS | headers | changed, json=message)

    async def post(self, message: Any, **changes: Any) -> httpx2.Response:
        """Send a message unchanged."""
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        changed = {name.replace("_", "-"): value for name, value in changes.items()}
        return await self.http.post("/mcp", headers=_HEADERS | self.session | changed, content=content)

    async def get(self, number: str) -> httpx2.Response:
        """Get the prompt that fails as its number says."""
        return await self.request("prompts/get", {"name": "letter", "arguments": {"number": number}})

    async def read(self, uri: str) -> httpx2.Response:
        return await self.request("resources/read", {"uri": uri})

    async def complete(self, argument: str) -> httpx2.Response:
        """Complete an argument of the prompt."""
        reference = {"type": "ref/prompt", "name": "letter"}
        params = {"ref": reference, "argument": {"name": argument, "value": ""}}
        return await self.request("completion/complete", params)

    async def log_from(self, level: str) -> httpx2.Response:
        """Set the log level."""
        if self.revision.stateless:
            return await self.request("tools/list", {"_meta": {LOG_LEVEL_KEY: level}})
        return await self.request("logging/setLevel", {"level": level})


Try: TypeAlias = Callable[[Client], Awaitable[httpx2.Response | None]]


async def _unready(client: Client) -> httpx2.Response | None:
    if client.revision.stateless:
        return None
    await client.begin()
    reply = await client.request("tools/list", {})
    await client.open()
    return reply


async def _busy(client: Client) -> httpx2.Response:
    first = asyncio.ensure_future(client.call("lonely"))
    await client.gate.entered.wait()
    second = await client.request("tools/call", {"name": "lonely"})
    client.gate.opened.set()
    await first
    return second


def _only(stateless: bool, attempt: Try) -> Try:
    async def attempt_if_it_exists(client: Client) -> httpx2.Response | None:
        return await attempt(client) if client.revision.stateless is stateless else None

    return attempt_if_it_exists


def _meta(version: str, **more: Any) -> dict[str, Any]:
    return {"_meta": {PROTOCOL_VERSION_KEY: version, **more}}


SITUATIONS: Final[Mapping[str, Try]] = {
    "a body that is not valid JSON or UTF-8": lambda client: client.post(b"{"),
    "a message that is not a JSON-RPC request": lambda client: client.post({"id": 1, "method": "tools/list"}),
    "an unknown method": lambda client: client.request("no/such", {}),
    "an unknown tool": lambda client: client.call("teleport"),
    "invalid arguments of a tool": lambda client: client.call("add", {"a": "1"}),
    "`arguments` that are not an object": lambda client: client.call("add", [1]),
    "`tools/call` without a name": lambda client: client.request("tools/call", {}),
    "an invalid cursor": lambda client: client.request("tools/list", {"cursor": "x"}),
    "a tool raises `ToolError`": lambda client: client.call("refuse"),
    "a tool raises another exception": lambda client: client.call("crash"),
    "the deadline of a call passes": lambda client: client.call("wait"),
    "`max_concurrency` calls of the tool are running": _busy,
    "an unknown prompt": lambda client: client.request("prompts/get", {"name": "poem"}),
    "invalid arguments of a prompt": lambda client: client.get("one"),
    "an unknown resource": lambda client: client.read("docs://one"),
    "a prompt raises `ToolError`": lambda client: client.get("0"),
    "a resource raises `ToolError`": lambda client: client.read("docs://0"),
    "a prompt raises another exception": lambda client: client.get("1"),
    "a resource raises another exception": lambda client: client.read("docs://1"),
    "a completion for an unknown argument": lambda client: client.complete("colour"),
    "a tool asks something that the client does not support": lambda client: client.call("inquire"),
    "a prompt or resource asks something that the client does not support": lambda client: client.get("2"),
    "an unknown log level": lambda client: client.log_from("loud"),
    "a tool call before `notifications/initialized`": _unready,
    "a missing `Mcp-Session-Id`": _only(False, lambda client: client.http.post("/mcp", headers=_HEADERS, json=_LIST)),
    "an unknown or ended session": _only(False, lambda client: client.post(_LIST, mcp_session_id="0123456789abcdef")),
    "an invalid `requestState`": _only(
        True, lambda client: client.request("tools/call", {"name": "inquire", "requestState": "x"})
    ),
    "a header that does not match the body": _only(
        True, lambda client: client.request("tools/list", {}, mcp_method="tools/call")
    ),
    "missing client capabilities in `_meta`": _only(
        True,
        lambda client: client.post(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": _meta(client.revision.name)},
            mcp_protocol_version=client.revision.name,
            mcp_method="tools/list",
        ),
    ),
    "an unsupported stateless revision": _only(
        True,
        lambda client: client.post(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/list",
                "params": _meta("2030-01-01", **{CLIENT_CAPABILITIES_KEY: {}}),
            },
            mcp_protocol_version="2030-01-01",
            mcp_method="tools/list",
        ),
    ),
    "a `Host` that is not allowed": lambda client: client.request("tools/list", {}, host="evil.example"),
    "an `Origin` that is not allowed": lambda client: client.request("tools/list", {}, origin="https://evil.example"),
    "another `Content-Type` than JSON": lambda client: client.request("tools/list", {}, content_type="text/plain"),
    "an `Accept` without JSON": lambda client: client.request("tools/list", {}, accept="text/html"),
    "a body over `limits.max_message_bytes`": lambda client: client.post(b" " * (1 << 20)),
}


async def errors_table() -> str:
    """Try every situation in every revision; neighboring revisions with equal responses share a column."""
    columns = [await _outcomes(revision) for revision in REVISIONS]
    shown: list[tuple[str, list[str]]] = []
    for revision, outcomes in zip(REVISIONS, columns, strict=True):
        if shown and shown[-1][1] == outcomes:
            shown[-1] = (f"{shown[-1][0].partition(' to ')[0]} to {revision.name}", outcomes)
        else:
            shown.append((revision.name, outcomes))
    rows = zip(SITUATIONS, *(outcomes for _, outcomes in shown), strict=True)
    return table(("Situation", *(title for title, _ in shown)), rows)


async def _outcomes(revision: Revision) -> list[str]:
    flags = {"limits": {"max_message_bytes": 1000}}
    container = Container()
    async with ServerHost(container, flags=flags) as host:
        transport = httpx2.ASGITransport(HttpApp(host.handler, host.settings))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            client = Client(http, revision, container.gate())
            await client.open()
            return [_outcome(await attempt(client)) for attempt in SITUATIONS.values()]


def _outcome(reply: httpx2.Response | None) -> str:
    if reply is None:
        return "–"
    body = reply.json()
    if "error" in body:
        return f"`{body['error']['code']}`, {reply.status_code}"
    assert body["result"]["isError"]
    return f"`isError`, {reply.status_code}"
