"""The console: access, content and confidentiality."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, Context, ToolError, tool
from axolotl_core.layers import type_of_layer
from axolotl_core.policies.audit import Sensitive
from axolotl_core.task_engine import TASKS_EXTENSION
from axolotl_server import InProcessClient, ServerHost
from axolotl_server.extensions.console.console import Console
from axolotl_server.extensions.console.journal import CallRecord
from axolotl_server.http.assembly import make_app
from tests.support.endless_tools import Stuck
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import call, message, mirrored
from tests.support.servers.console_server import PAGE, TOKEN, ConsoleServer, ask_directly, console_of, serving_console
from tests.support.servers.serving import until
from tests.support.tools import container_of

DATA = ("/console/state", "/console/events", "/console/tasks")
FILES = ("/console", "/console/console.js", "/console/console.css", "/console/icon.svg")


@tool(max_concurrency=3, timeout_seconds=7)
async def greet(name: str, password: Annotated[str, Sensitive] = "") -> str:
    """Greet someone."""
    return f"Hello, {name}!"


@tool
async def complain() -> str:
    """Tell of a problem."""
    raise ToolError("not today")


@tool
async def crash() -> str:
    """Fail."""
    raise RuntimeError("the secret")


@tool(timeout_seconds=20, task_support="optional")
async def wait(context: Context) -> str:
    """Wait until the server stops."""
    await asyncio.Event().wait()
    return "never"


class Container(containers.DeclarativeContainer):
    """Tools that end in different ways."""

    tools = providers.List(*map(providers.Object, (greet, complain, crash, wait)))


async def calls(reader: EventReader, count: int) -> list[dict[str, Any]]:
    """Wait for a number of calls to end."""
    ended: list[dict[str, Any]] = []
    while len(ended) < count:
        news = (await reader.take()).message
        ended += [one for one in news.get("calls", ()) if "outcome" in one]
    return ended


async def use(server: ConsoleServer, client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool like a client."""
    body = call(name, arguments)
    return (await client.post(f"{server.url}/mcp", content=body, headers=mirrored(name=name))).json()


async def test_off_by_default() -> None:
    """By default there is no console and no observer."""
    async with ServerHost(Container()) as host:
        assert host.extension(Console) is None
        binding = host.assembly.tools.find("greet")
        assert binding is not None
        assert [type_of_layer(layer).__name__ for layer in binding.layers] == [
            "validation",
            "timeout",
            "ConcurrencyLayer",
        ]
        app = make_app(host)
        for path in (*DATA, *FILES):
            status, _ = await ask_directly(app, path, x_axolotl_console=TOKEN)
            assert status == 404, path


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "", "192.0.2.7", "example.com"])
async def test_rejected_on_a_public_address(address: str) -> None:
    """A console on a public address is a configuration error that explains the options."""
    flags = {"http": {"host": address, "allow_unauthenticated": True}, "console": {"enabled": True}}
    with pytest.raises(ConfigurationError, match=r"console\.enabled is for this machine only.*127\.0\.0\.1"):
        await ServerHost(Container(), flags=flags).start()


@pytest.mark.parametrize("path", ["/console", "/console/mcp"])
async def test_paths_do_not_collide(path: str) -> None:
    """The endpoint and the console cannot have the same path."""
    with pytest.raises(ConfigurationError, match="The console uses the path /console"):
        await ServerHost(Container(), flags={"http": {"path": path}, "console": {"enabled": True}}).start()


@pytest.mark.parametrize("path", [*DATA, *FILES])
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"client": "192.0.2.7"}, 403),
        ({"client": None}, 403),
        ({"x_forwarded_for": "127.0.0.1"}, 403),
        ({"forwarded": "for=127.0.0.1"}, 403),
        ({"host": "evil.example:8000"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"method": "POST"}, 405),
        ({"method": "OPTIONS"}, 405),
    ],
)
async def test_strangers(path: str, changes: dict[str, Any], status: int) -> None:
    """Requests from other addresses, hosts, proxies or pages are rejected."""
    async with ServerHost(Container(), flags={"console": {"enabled": True}}) as host:
        got, answer = await ask_directly(make_app(host), path, **{"x_axolotl_console": TOKEN, **changes})
    assert got == status
    assert set(answer) == {"jsonrpc", "id", "error"} or "error" in answer
    assert "greet" not in json.dumps(answer)


@pytest.mark.parametrize("path", DATA)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_axolotl_console": TOKEN, "sec_fetch_site": "cross-site"},
        {"x_axolotl_console": TOKEN, "sec_fetch_site": "same-site"},
        {"sec_fetch_site": "same-origin"},
    ],
)
async def test_foreign_pages_get_no_data(path: str, headers: dict[str, str]) -> None:
    """Requests that other sites can make a browser send get no data."""
    async with ServerHost(Container(), flags={"console": {"enabled": True}}) as host:
        status, answer = await ask_directly(make_app(host), path, **headers)
    assert status == 403
    assert "its own page" in answer["error"]["message"]


@pytest.mark.parametrize("path", DATA)
@pytest.mark.parametrize("sent", ["1", "", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper()])
async def test_data_needs_the_token(path: str, sent: str) -> None:
    """A request that does not know the token gets no data, for example from a proxy that adds no headers."""
    async with ServerHost(Container(), flags={"console": {"enabled": True, "token": TOKEN}}) as host:
        status, answer = await ask_directly(make_app(host), path, x_axolotl_console=sent)
    assert status == 403
    assert answer["error"]["message"] == (
        "Forbidden: open the console with the link that the server printed when it started"
    )


async def test_the_token_is_random() -> None:
    """Unless it is set, each server has another token, which is in the link."""
    tokens: set[str] = set()
    for _ in range(2):
        async with ServerHost(Container(), flags={"console": {"enabled": True}}) as host:
            tokens.add(console_of(host).token)
            assert (
                console_of(host).link("http://[::1]:80/mcp")
                == f"http://[::1]:80/console#token={console_of(host).token}"
            )
            status, _ = await ask_directly(make_app(host), "/console/state", x_axolotl_console=console_of(host).token)
            assert status == 200
    assert len(tokens) == 2
    assert all(len(token) >= 20 for token in tokens)


async def test_files() -> None:
    """The page has a policy that forbids foreign scripts, framing and caching."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        for path in FILES:
            reply = await client.get(server.url + path)
            assert reply.status_code == 200
            policy = reply.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["cache-control"] == "no-store"
        page = await client.get(f"{server.url}/console")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "http://" not in page.text
    assert "https://" not in page.text


async def test_gate(tmp_path: Path) -> None:
    """If authentication is required, the data needs it too, but not the static files. Wrong tokens are recorded."""
    log = tmp_path / "audit.jsonl"
    settings = {"auth": {"api_keys": {"ann": {"hash": "sha256:" + "0" * 64}}}, "audit": {"jsonl_path": str(log)}}
    async with serving_console(Container(), settings) as server, httpx2.AsyncClient() as client:
        assert (await client.get(f"{server.url}/console")).status_code == 200
        for path in DATA:
            assert (await client.get(server.url + path, headers=PAGE)).status_code == 401
        wrong = {**PAGE, "Authorization": "Bearer axk_wrong"}
        assert (await client.get(server.url + DATA[0], headers=wrong)).status_code == 401
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [one["client_address"] for one in records if one["event"] == "rejected"] == ["127.0.0.1"]


async def test_state() -> None:
    """The state shows the limits of each tool and how to connect."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        state = (await client.get(f"{server.url}/console/state", headers=PAGE)).json()
    assert state["tools"]["greet"]["limits"]["timeout_seconds"] == 7
    assert state["tools"]["greet"]["limits"]["max_concurrency"] == 3
    assert state["tools"]["greet"]["layers"] == ["validation", "timeout", "ConcurrencyLayer"]
    assert state["protocol"]["endpoint"] == "/mcp"
    assert state["limits"]["max_inflight"] == 10_000


async def test_sessions() -> None:
    """Sessions are shown with their clients, but without their ids."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as http:
        client = Client(http, f"{server.url}/mcp")
        await client.begin()
        async with server.listening(http) as reader:
            hello = (await reader.take()).message
        [session] = hello["activity"]["sessions"]
        assert [(one.method, one.client) for one in console_of(server.host).journal.recent] == [
            ("initialize", "test 1")
        ]
    assert (session["client"], session["revision"]) == ("test 1", "2025-11-25")
    assert client.headers["Mcp-Session-Id"] not in json.dumps(hello)


async def test_pages_are_notified_of_calls() -> None:
    """A page is notified of calls by all clients, with their outcome but without arguments."""
    async with (
        serving_console(Container()) as server,
        httpx2.AsyncClient() as client,
        httpx2.AsyncClient() as other,
        server.listening(client) as reader,
    ):
        hello = (await reader.take()).message
        assert (hello["type"], hello["calls"], hello.get("problem")) == ("hello", [], None)
        for name, arguments in (
            ("greet", {"name": "Ada"}),
            ("greet", {"nmae": "Ada"}),
            ("complain", {}),
            ("crash", {}),
        ):
            await use(server, other, name, arguments)
        told = await calls(reader, 4)
    assert [(one["name"], one["outcome"]) for one in told] == [
        ("greet", "ok"),
        ("greet", "invalid_arguments"),
        ("complain", "error"),
        ("crash", "failed"),
    ]
    assert all(one["kind"] == "tool" and one["subject"] == "anonymous" and one["seconds"] > 0 for one in told)
    assert "Ada" not in json.dumps(told)
    assert "secret" not in json.dumps(told)


async def test_new_pages_get_the_latest_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new page gets the latest calls, up to the configured number."""
    monkeypatch.setattr("axolotl_server.extensions.console.console.RECENT_CALLS", 5)
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        for number in range(12):
            await use(server, client, "greet", {"name": str(number)})
        async with server.listening(client) as reader:
            hello = (await reader.take()).message
        assert len(console_of(server.host).journal.recent) == 5
    assert [one["number"] for one in hello["calls"]] == [8, 9, 10, 11, 12]


async def test_arguments_are_shown_if_configured() -> None:
    """Arguments are shown if configured, with sensitive values redacted."""
    async with serving_console(Container(), show_arguments=True) as server, httpx2.AsyncClient() as client:
        await use(server, client, "greet", {"name": "Ada", "password": "hunter2"})
        await use(server, client, "greet", {"name": "x" * 5000})
        async with server.listening(client) as reader:
            shown, huge = (await reader.take()).message["calls"]
    assert shown["arguments"]["name"] == "Ada"
    assert "hunter2" not in json.dumps(shown)
    assert "arguments" not in huge


async def test_running_and_cancelled() -> None:
    """A call is shown when it starts, and when its client disconnects."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        async with server.listening(client) as reader:
            await reader.take()
            body = call("wait")
            async with httpx2.AsyncClient() as other:
                waiting = asyncio.ensure_future(
                    other.post(f"{server.url}/mcp", content=body, headers=mirrored(name="wait"))
                )
                began = (await reader.take()).message["calls"]
                assert [(one["name"], one.get("outcome")) for one in began] == [("wait", None)]
                waiting.cancel()
            [ended] = await calls(reader, 1)
        assert list(console_of(server.host).journal.running()) == []
    assert (ended["number"], ended["outcome"], ended["reason"]) == (began[0]["number"], "cancelled", "disconnect")


async def test_other_requests() -> None:
    """Other requests and errors are shown by their method."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        for method, name in (("tools/list", None), ("tools/call", "no_such_tool")):
            params = {"_meta": meta, **({} if name is None else {"name": name})}
            await client.post(f"{server.url}/mcp", content=message(method, params), headers=mirrored(method, name))
        for method, header in (("tools/list", "prompts/list"), ("tools/nothing", "tools/nothing")):
            body = message(method, {"_meta": meta})
            await client.post(f"{server.url}/mcp", content=body, headers=mirrored(header, None))
        async with server.listening(client) as reader:
            told = (await reader.take()).message["calls"]
    assert [(one["method"], one.get("name"), one["outcome"], one.get("reason")) for one in told] == [
        ("tools/list", None, "ok", None),
        ("tools/call", "no_such_tool", "error", "ToolNotFound"),
        ("tools/list", None, "error", "HeaderMismatch"),
        ("tools/nothing", None, "error", "MethodNotFound"),
    ]


async def test_tasks() -> None:
    """The request for a task and its run are separate entries."""
    release = asyncio.Event()

    @tool(task_support="required")
    async def work() -> str:
        """Work until released."""
        await release.wait()
        raise ToolError("not today")

    knows_tasks: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
    async with ServerHost(container_of(work), flags={"console": {"enabled": True}}) as host:
        journal = console_of(host).journal
        client = InProcessClient(host.handler, capabilities=knows_tasks)
        calling = asyncio.ensure_future(client.call("work"))
        await until(lambda: any(one.kind == "tool" for one in journal.running()))
        asked = journal.recent[0]
        assert (asked.method, asked.name, asked.outcome, asked.reason) == ("tools/call", "work", "ok", "task")
        release.set()
        assert (await calling).is_error
        [run] = [one for one in journal.recent if one.kind is not None]
        assert (run.name, run.outcome) == ("work", "error")
        assert list(journal.running()) == []


async def test_code_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An abandoned call is shown as ended, also when its code ends later."""
    stuck = Stuck()
    monkeypatch.setattr("axolotl_server.calls.running_call.GRACE_SECONDS", 0.01)
    flags = {"console": {"enabled": True}}
    async with ServerHost(container_of(stuck), flags=flags) as host:
        assert (await InProcessClient(host.handler).call(stuck.name)).is_error
        [ended] = console_of(host).journal.recent
        assert (ended.outcome, ended.reason) == ("abandoned", "timeout")
        assert list(console_of(host).journal.running()) == []
        stuck.release.set()
        await stuck.ended.wait()
    assert console_of(host).journal.recent == (ended,)


async def test_a_request_that_ends_at_once() -> None:
    """Listeners hear only of the end of a request that has ended before they could hear of its beginning."""
    async with ServerHost(Container(), flags={"console": {"enabled": True}}) as host:
        heard: list[CallRecord] = []
        console_of(host).journal.listen(heard.append)
        await InProcessClient(host.handler).call("greet", {"name": "Ada"})
        await asyncio.sleep(0)  # the beginning would be told now
        assert [one.outcome for one in heard] == ["ok"]


async def test_beside_telemetry() -> None:
    """The console and the metrics both record every call."""
    flags = {"console": {"enabled": True}, "metrics": {"enabled": True}}
    async with ServerHost(Container(), flags=flags) as host:
        assert host.assembly.observation is not None
        client = InProcessClient(host.handler)
        await client.call("greet", {"name": "Ada"})
        await client.call("complain")
        assert [(one.name, one.outcome) for one in console_of(host).journal.recent] == [
            ("greet", "ok"),
            ("complain", "error"),
        ]
        assert dict(host.assembly.observation.values.read("axolotl.calls")) == {
            ("tool", "greet", "ok"): 1,
            ("tool", "complain", "error"): 1,
        }


async def test_failed_reloads_are_reported() -> None:
    """A failed reload is reported to open and new pages until it is fixed."""
    async with (
        serving_console(Container()) as server,
        httpx2.AsyncClient() as client,
        server.listening(client) as reader,
    ):
        await reader.take()
        console_of(server.host).set_problem("SyntaxError")
        assert (await reader.take()).message == {"type": "problem", "problem": "SyntaxError"}
        async with server.listening(client) as later:
            assert (await later.take()).message["problem"] == "SyntaxError"
        console_of(server.host).set_problem(None)
        assert (await reader.take()).message == {"type": "problem", "problem": None}


async def test_pages_are_counted() -> None:
    """The number of open pages is limited."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(server.listening(client)) for _ in range(16)]
            assert [(await one.take()).message["type"] for one in readers] == ["hello"] * 16
            refused = await client.get(f"{server.url}/console/events", headers=PAGE)
            assert refused.status_code == 503
        await until(lambda: len(server.app.sessions) == 0)


async def test_a_flood_is_bundled() -> None:
    """Many calls are combined into few messages, without losing any."""
    async with (
        serving_console(Container()) as server,
        httpx2.AsyncClient() as client,
        httpx2.AsyncClient() as other,
        server.listening(client) as reader,
    ):
        await reader.take()
        for _ in range(300):
            await use(server, other, "greet", {"name": "a"})
        messages, seen = 0, set[int]()
        while len(seen) < 300:
            news = (await reader.take()).message
            messages += 1
            seen |= {one["number"] for one in news["calls"] if "outcome" in one}
    assert messages < 100


async def test_drain_ends_the_streams() -> None:
    """A shutdown does not wait for open pages."""
    async with serving_console(Container()) as server, httpx2.AsyncClient() as client:
        async with server.listening(client) as reader:
            await reader.take()
            server.app.sessions.end_streams()
            assert await reader.rest() == []
        assert (await client.get(f"{server.url}/console/events", headers=PAGE)).status_code == 503
