"""Servers that are mounted in other ASGI applications."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from dependency_injector import containers, providers
from fastapi import FastAPI
from mcp import Client
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Mount

from axolotl_core import ConfigurationError, Context, Principal, tool
from axolotl_server import MountedApp, ServerHost, make_app, starlette_user
from axolotl_server.http.mounting import path_below_root
from tests.support.servers.serving import free_port

Scope = MutableMapping[str, Any]
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@tool
async def whoami(context: Context) -> str:
    """Tell who is calling."""
    return context.principal.subject


@tool(scopes=frozenset({"staff"}))
async def manage() -> str:
    """Work for the staff only."""
    return "done"


OPEN = {"http": {"allow_unauthenticated": True}}


class Container(containers.DeclarativeContainer):
    """Two tools, one of which needs a scope."""

    tools = providers.List(providers.Object(whoami), providers.Object(manage))


def bare(app: Any, prefix: str) -> Any:
    """Make a plain ASGI application around another one, which it calls below a prefix."""

    async def around(scope: Scope, receive: Any, send: Any) -> None:
        await app({**scope, "root_path": prefix}, receive, send)

    return around


@asynccontextmanager
async def asking(app: Any, mcp: MountedApp, root_path: str = "") -> AsyncIterator[httpx2.AsyncClient]:
    """Run the lifespan of a server, and make requests to the application around it."""
    transport = httpx2.ASGITransport(app, root_path=root_path)
    async with mcp.lifespan(app), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def call(client: httpx2.AsyncClient, path: str, name: str = "whoami", **headers: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}, "_meta": META}}
    routing = {"mcp-method": "tools/call", "mcp-name": name}
    return await client.post(path, json=body, headers={**HEADERS, **routing, **headers})


def text(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["result"]["content"][0]["text"])


@pytest.mark.parametrize("path", ["/tools", "/gateway/tools"], ids=["removed", "kept"])
@pytest.mark.parametrize("root", ["", "/gateway"])
@pytest.mark.parametrize("kind", ["fastapi", "starlette", "bare"])
async def test_hosts(kind: str, root: str, path: str) -> None:
    """The endpoint is below the prefix of the mount, whether or not a proxy removes the prefix of the application."""
    if not root:
        path = "/tools"
    mcp = MountedApp(Container, settings=OPEN)
    if kind == "fastapi":
        app: Any = FastAPI()
        app.mount("/tools", mcp)
    elif kind == "starlette":
        app = Starlette(routes=[Mount("/tools", mcp)])
    else:
        app = bare(mcp, f"{root}/tools")
    async with asking(app, mcp, root) as client:
        assert text(await call(client, f"{path}/mcp")) == "anonymous"
        assert text(await call(client, f"{path}/mcp/")) == "anonymous"
        assert (await client.get(f"{path}/livez")).status_code == 200
        assert (await client.get(f"{path}/other")).status_code == 404


@pytest.mark.parametrize(
    ("path", "root", "below"),
    [
        ("/tools/mcp", "/tools", "/mcp"),
        ("/tools/mcp", "/gw/tools", "/mcp"),
        ("/gw/tools/mcp", "/gw/tools", "/mcp"),
        ("/mcp", "", "/mcp"),
        ("/mcp", "/gw", "/mcp"),
        ("/toolset/mcp", "/tools", "/toolset/mcp"),
        ("/tools", "/tools/", "/"),
    ],
)
def test_root_path(path: str, root: str, below: str) -> None:
    """The prefix is removed as a whole, or the longest end of it that the path begins with."""
    assert path_below_root({"path": path, "root_path": root}) == below


async def test_strangers() -> None:
    """A server without any authentication does not start, unless the settings say that everyone may use it."""
    mcp = MountedApp(Container, settings={})
    with pytest.raises(ConfigurationError, match=r"Pass principal to MountedApp.*http\.allow_unauthenticated = true"):
        async with mcp.lifespan():
            pass


async def test_two_servers() -> None:
    """Two servers in one application are independent, and one lifespan runs both with that of the application."""
    one, two = (
        MountedApp(Container, settings=OPEN),
        MountedApp(Container, settings={}, principal=lambda scope: Principal("ada")),
    )
    events: list[str] = []

    @asynccontextmanager
    async def mine(app: Any) -> AsyncIterator[dict[str, str]]:
        events.append("begin")
        yield {"my": "state"}
        events.append("end")

    app = Starlette(
        routes=[Mount("/one", one), Mount("/two", two)], lifespan=one.lifespan_with(two.lifespan_with(mine))
    )
    async with app.router.lifespan_context(app) as state:
        assert (state, events) == ({"my": "state"}, ["begin"])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
            assert text(await call(client, "/one/mcp")) == "anonymous"
            assert text(await call(client, "/two/mcp")) == "ada"
    assert events == ["begin", "end"]


async def test_before_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """Requests before the start get 503, and the log says once what to do."""
    app = FastAPI()
    app.mount("/tools", MountedApp(Container, settings=OPEN))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
        for _ in range(2):
            assert (await call(client, "/tools/mcp")).status_code == 503
    [record] = [record for record in caplog.records if record.name == "axolotl"]
    assert "Pass lifespan=mcp.lifespan to it" in record.message


async def test_principal() -> None:
    """The principal comes from the host; without one the request is refused, and a failure is never anonymous."""

    async def principal_of(scope: Scope) -> Any:
        named = dict(scope["headers"]).get(b"authorization", b"").decode()
        if named == "broken":
            raise RuntimeError("secret")
        known = {"": None, "text": "ada", "boss": Principal("boss", scopes=frozenset({"staff"}))}
        return known.get(named, Principal(named))

    mcp = MountedApp(Container, settings={"authorization": {"denied_as": "forbidden"}}, principal=principal_of)
    async with asking(bare(mcp, "/tools"), mcp) as client:
        assert text(await call(client, "/tools/mcp", authorization="eve")) == "eve"
        assert (await call(client, "/tools/mcp")).status_code == 401
        for name in ("broken", "text"):
            answer = await call(client, "/tools/mcp", authorization=name)
            assert (answer.status_code, "secret" in answer.text) == (500, False)
        assert text(await call(client, "/tools/mcp", "manage", authorization="boss")) == "done"
        refused = await call(client, "/tools/mcp", "manage", authorization="eve")
        assert (refused.status_code, "you need the scopes staff" in refused.text) == (403, True)


async def test_principal_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A principal of the host and tokens of our own are two ways to authenticate."""
    auth = {"resource": "https://shop.example/mcp", "issuers": ["https://issuer.example"]}
    mcp = MountedApp(Container, settings={"auth": auth}, principal=starlette_user)
    with pytest.raises(ConfigurationError, match="two ways to authenticate"):
        async with mcp.lifespan():
            pass


class Basic(AuthenticationBackend):
    """Believes a header."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        name = conn.headers.get("x-user")
        return None if name is None else (AuthCredentials(["staff"]), SimpleUser(name))


async def test_starlette_user() -> None:
    """`starlette_user` reads the user and the scopes of Starlette's middleware."""
    mcp = MountedApp(Container, settings={}, principal=starlette_user)
    middleware = [Middleware(AuthenticationMiddleware, backend=Basic())]
    app = Starlette(routes=[Mount("/tools", mcp)], middleware=middleware)
    async with asking(app, mcp) as client:
        assert text(await call(client, "/tools/mcp", **{"x-user": "ada"})) == "ada"
        assert text(await call(client, "/tools/mcp", "manage", **{"x-user": "ada"})) == "done"
        assert (await call(client, "/tools/mcp")).status_code == 401


async def test_well_known(caplog: pytest.LogCaptureFixture) -> None:
    """The host serves the metadata at its root; without the routes, the start warns."""
    auth = {"resource": "https://shop.example/tools/mcp", "issuers": ["https://issuer.example"]}
    mcp = MountedApp(Container, settings={"auth": auth})
    app = FastAPI()
    app.mount("/tools", mcp)
    async with asking(app, mcp):
        pass
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "add well_known_routes()" in record.getMessage()
    caplog.clear()
    for path, page in mcp.well_known_routes().items():
        app.add_route(path, page)  # type: ignore[arg-type]
    async with asking(app, mcp) as client:
        metadata = await client.get("/.well-known/oauth-protected-resource/tools/mcp")
        refused = await call(client, "/tools/mcp")
    assert metadata.json()["resource"] == "https://shop.example/tools/mcp"
    assert (
        'resource_metadata="https://shop.example/.well-known/oauth-protected-resource/tools/mcp"'
        in (refused.headers["www-authenticate"])
    )
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert MountedApp(Container, settings=OPEN).well_known_routes() == {}


async def test_alone() -> None:
    """As the outermost application it answers the messages of the lifespan itself."""
    mcp, sent = MountedApp(Container, settings=OPEN), []
    inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    outbox: asyncio.Queue[Any] = asyncio.Queue()
    running = asyncio.create_task(mcp({"type": "lifespan"}, inbox.get, outbox.put))
    await inbox.put({"type": "lifespan.startup"})
    sent.append((await outbox.get())["type"])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(mcp), base_url="http://localhost") as client:
        assert text(await call(client, "/mcp")) == "anonymous"
    await inbox.put({"type": "lifespan.shutdown"})
    sent.append((await outbox.get())["type"])
    await running
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_failing_start() -> None:
    """A server that cannot start reports why."""
    outbox: asyncio.Queue[Any] = asyncio.Queue()

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    await MountedApp("tests.nowhere:Container", settings=OPEN)({"type": "lifespan"}, receive, outbox.put)
    message = await outbox.get()
    assert (message["type"], "tests.nowhere" in message["message"]) == ("lifespan.startup.failed", True)


async def test_drain() -> None:
    """The end of the lifespan waits for running calls."""
    begun, go = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        begun.set()
        await go.wait()
        return "answered"

    class Slow(containers.DeclarativeContainer):
        tools = providers.List(providers.Object(wait))

    mcp = MountedApp(Slow, settings=OPEN)
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(mcp), base_url="http://localhost")
    async with client:
        async with mcp.lifespan():
            calling = asyncio.create_task(call(client, "/mcp", "wait"))
            await begun.wait()
            asyncio.get_running_loop().call_soon(go.set)
        assert text(await calling) == "answered"


async def test_settings_file(tmp_path: Path) -> None:
    """A file, a profile and a started host are accepted, too."""
    file = tmp_path / "shop.toml"
    file.write_text('[http]\nallow_unauthenticated = true\npath = "/a"\n[profile.prod.http]\npath = "/b"\n')
    mcp = MountedApp("tests.server.http.test_mounting:Container", settings=file, profile="prod")
    async with asking(mcp, mcp) as client:
        assert text(await call(client, "/b")) == "anonymous"
    async with ServerHost(Container()) as host:
        transport = httpx2.ASGITransport(make_app(host))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert text(await call(client, "/mcp")) == "anonymous"


async def test_official_client() -> None:
    """The official client uses a server that is mounted in FastAPI, in both eras."""
    mcp = MountedApp(Container, settings=OPEN)
    app = FastAPI(lifespan=mcp.lifespan)
    app.mount("/tools", mcp)
    listener = free_port()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        for mode in ("auto", "legacy"):
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/tools/mcp"
            async with Client(url, mode=mode) as client:
                result = await client.call_tool("whoami", {})
                assert json.loads(result.model_dump_json())["content"][0]["text"] == "anonymous"
    finally:
        server.should_exit = True
        await serving
