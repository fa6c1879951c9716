"""The features of Axolotl, the official SDK and FastMCP, printed as JSON by `python -m tests.support.docs.peers`."""

import asyncio
import inspect
import json
import logging
import re
import warnings
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx2
from pydantic import BaseModel

import axolotl_cli
import axolotl_core
import axolotl_server
from axolotl_core.features.feature import IFeature
from axolotl_core.protocol.versions import REVISIONS
from tests.support.tools import container_of

_HANDSHAKE, _STATELESS = REVISIONS[-2].name, REVISIONS[-1].name
_HEADERS: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_ROOT: Final = "http://127.0.0.1:8000"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": _STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


class Name(BaseModel):
    """The answer to a question."""

    name: str


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def crash() -> str:
    """Fail."""
    raise ValueError("swordfish")


async def call_everything(app: Any, lifespan: AbstractAsyncContextManager[Any]) -> dict[str, bool]:
    """Call the tools of a server through its ASGI application."""
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=_ROOT)
    async with lifespan, http as client:
        handshakes = [await _initialize(client, one.name) for one in REVISIONS if not one.stateless]
        return {
            "all revisions": all(reply.status_code == 200 for reply in handshakes)
            and all(one.name in reply.text for one, reply in zip(REVISIONS[:-1], handshakes, strict=True))
            and not await _fails(client, "add", {"a": 1, "b": 2}),
            "any case": not await _fails(client, "ADD", {"a": 1, "b": 2}),
            "strict types": await _fails(client, "add", {"a": "1", "b": 2}),
            "unknown refused": await _fails(client, "add", {"a": 1, "b": 2, "c": 3}),
            "exceptions hidden": "swordfish" not in await _call(client, "crash", {}),
            "asks in the body": "input_required" in await _call(client, "ask", {}),
            "rebinding refused": (await _initialize(client, host="evil.example")).is_error
            and (await _initialize(client, origin="https://evil.example")).is_error,
        }


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a project, and the options that a tool has there."""

    packages: tuple[ModuleType, ...]
    options: set[str]

    def facts(self) -> dict[str, bool]:
        """Look for features by the names that are defined in the source, and by the options of a tool."""
        files = [file for package in self.packages for file in Path(package.__path__[0]).rglob("*.py")]
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        names = set(re.findall(r"^\s*(?:class|(?:async )?def) (\w+)", text, re.MULTILINE))
        return {
            "token verification": _any(names, r"I?TokenVerifier"),
            "authorization": not self.options.isdisjoint({"auth", "scopes"}),
            "audit": _any(names, r".*Audit.*"),
            "approval": "requires_approval" in self.options,
            "idempotency and breakers": {"idempotency", "breaker"} <= self.options,
            "deadlines": not self.options.isdisjoint({"timeout", "timeout_seconds"}),
            "concurrency limits": "max_concurrency" in self.options,
            "rate limits": _any(names, r".*(?:RateLimiting|Quota).*"),
            "retries": _any(names, r"Retry(?:Middleware|Layer)"),
            "response caching": _any(names, r".*Caching(?:Middleware|Layer)"),
            "injection": "import containers" in text or "Depends," in text,
            "telemetry": "opentelemetry" in text,
            "client": any("Client" in getattr(package, "__all__", dir(package)) for package in self.packages),
            "composition": {"from_openapi", "mount"} <= names,
        }


def _any(names: set[str], pattern: str) -> bool:
    return any(re.fullmatch(pattern, name) for name in names)


async def _initialize(
    client: httpx2.AsyncClient, revision: str = REVISIONS[-2].name, **headers: str
) -> httpx2.Response:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "docs", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return await client.post("/mcp", headers={**_HEADERS, **headers}, json=message)


async def _call(client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> str:
    headers = {"mcp-protocol-version": _STATELESS, "mcp-method": "tools/call", "mcp-name": name}
    params = {"name": name, "arguments": arguments, "_meta": _META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await client.post("/mcp", headers=_HEADERS | headers, json=message)).text


async def _fails(client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> bool:
    answer = await _call(client, name, arguments)
    return '"isError":true' in answer or '"error":' in answer


async def try_axolotl() -> dict[str, bool]:
    """Try Axolotl itself."""

    async def ask(context: axolotl_core.Context) -> str:
        return (await context.ask(Name, "Who?")).name

    tools = [axolotl_core.tool(one) for one in (add, crash, ask)]
    host = axolotl_server.ServerHost(container_of(*tools))
    async with host:
        found = await call_everything(axolotl_server.make_app(host), _Nothing())
    options = {*IFeature.__annotations__, *axolotl_core.ITool.__annotations__}
    return found | Source((axolotl_core, axolotl_server, axolotl_cli), options).facts()


async def try_peer(package: ModuleType, server: Any, context: Any, app: str) -> dict[str, bool]:
    """Try a server of another project; `app` names the method that makes its ASGI application."""

    async def ask(ctx: Any) -> str:
        return str(await ctx.elicit("Who?", Name))

    ask.__annotations__["ctx"] = context
    for one in (add, crash, ask):
        server.tool()(one)
    application = getattr(server, app)()
    found = await call_everything(application, application.router.lifespan_context(application))
    return found | Source((package,), set(inspect.signature(server.tool).parameters)).facts()


class _Nothing(AbstractAsyncContextManager[None]):
    async def __aexit__(self, *error: object) -> None: ...


async def main() -> None:
    """Print what was found, by project."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import fastmcp
    import mcp
    import mcp.server.mcpserver as official

    found = {
        "axolotl": await try_axolotl(),
        "mcp": await try_peer(mcp, official.MCPServer("docs"), official.Context, "streamable_http_app"),
        "fastmcp": await try_peer(fastmcp, fastmcp.FastMCP("docs"), fastmcp.Context, "http_app"),
    }
    print(json.dumps({"versions": {name: version(name) for name in ("mcp", "fastmcp")}, **found}))


if __name__ == "__main__":
    asyncio.run(main())
