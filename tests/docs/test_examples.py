"""The examples on the pages; each test is named after its file."""

import importlib
import inspect
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_core import ConfigurationError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from axolotl_server.hosting.container_loading import load_container
from tests.support.docs.pages import EXAMPLES
from tests.support.docs.running import RunningServer

pytestmark = pytest.mark.slow


def load(name: str) -> Any:
    """Import an example."""
    return importlib.import_module(name)


def own_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the entries that the server adds to every `_meta`."""
    return {key: value for key, value in meta.items() if not key.startswith("io.modelcontextprotocol/")}


def test_every_example_has_a_test() -> None:
    """Every example file has a test."""
    names = {file.stem for file in EXAMPLES.glob("*.py")} | {"project"}
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*examples.py"))
    tested = set(re.findall(r"^(?:async def |def )?test_(\w+)", tests, re.MULTILINE))
    assert names - tested == set()


async def test_greeter() -> None:
    """The first server greets, and its tool name is case-insensitive."""
    async with connect(load("greeter").Container()) as client:
        assert (await client.call("GREET", {"name": "Ada"})).text == "Hello, Ada!"


async def test_hello() -> None:
    """The first tool needs no container."""
    async with connect(load_container(str(EXAMPLES / "hello.py"))) as client:
        assert (await client.call("greet", {"name": "Ada"})).text == "Hello, Ada!"


@pytest.mark.parametrize(
    "name", ["test_approving", "test_booking", "test_greeter", "test_handbook", "test_reviews", "test_shop"]
)
async def test_tests(name: str) -> None:
    """The tests on the pages pass."""
    tests = [value for key, value in vars(load(name)).items() if key.startswith("test_")]
    assert tests
    for test in tests:
        assert inspect.iscoroutinefunction(test)
        await test()


test_test_approving = None  # run by test_tests, like those below
test_test_booking = None
test_test_greeter = None
test_test_handbook = None
test_test_reviews = None
test_test_shop = None


def test_official_client() -> None:
    """The official client reaches the first server over HTTP; the first page shows it over stdio."""
    with RunningServer("axolotl serve greeter.py --transport http") as server:
        command = [sys.executable, "official_client.py", server.url]
        printed = subprocess.run(command, cwd=EXAMPLES, capture_output=True, timeout=60, check=True, text=True).stdout
    assert "2026-07-28" in printed
    assert "Hello, Ada!" in printed


async def test_functions() -> None:
    """Functions and methods become tools, described by their docstrings."""
    module = load("functions")
    assert module.checksum("a") == 3904355907
    async with connect(module.Container()) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        assert list(tools) == ["wait", "crc32", "add_note", "read_notes"]
        assert tools["crc32"]["description"] == "Compute a checksum."
        assert tools["crc32"]["inputSchema"]["properties"]["start"]["description"].startswith("The checksum")
        assert "context" not in tools["wait"]["inputSchema"]["properties"]
        assert (await client.call("wait", {"seconds": 0})).text == "waited, 30 seconds were left"
        assert (await client.call("crc32", {"text": "a"})).structured == 3904355907
        assert (await client.call("add_note", {"text": "milk"})).structured == 1
        assert (await client.call("read_notes")).structured == ["milk"]


async def test_progress_of_streams() -> None:
    """A stream that reports its own progress is not counted."""
    heard: list[Mapping[str, Any]] = []
    async with connect(load("streams").Container()) as client:
        outcome = await client.call("report", {"orders": ["tea", "milk"]}, on_progress=heard.append)
    assert outcome.text == "Report\n- tea\n- milk\n"
    assert [(one["progress"], one["message"]) for one in heard] == [(1, "order 1 of 2"), (2, "order 2 of 2")]


async def test_streams() -> None:
    """Text is joined, other items become a list, and each item is reported as progress."""
    heard: list[Mapping[str, Any]] = []
    async with connect(load("streams").Container()) as client:
        assert (await client.call("recite", {"topic": "moon"})).text == "Oh moon,\nhow you shine!\n"
        assert (await client.call("count", {"to": 3}, on_progress=heard.append)).structured == [1, 2, 3]
    assert [progress["progress"] for progress in heard] == [1, 2, 3]


async def test_raw_schema() -> None:
    """Arguments are validated against a raw schema."""
    async with connect(load("raw_schema").Container()) as client:
        assert (await client.call("describe_table", {"table": "orders"})).structured == {"table": "orders", "rows": 100}
        answer = await client.call("describe_table", {"table": "Orders; --", "limit": 0})
    assert answer.is_error
    assert answer.text == (
        'Invalid arguments: table: "Orders; --" does not match "^[a-z_]+$"; limit: 0 is less than the minimum of 1'
    )


async def test_outputs() -> None:
    """Every kind of output has the documented result."""
    async with connect(load("outputs").Container()) as client:
        schemas = {tool["name"]: tool.get("outputSchema", {}).get("type") for tool in await client.list_tools()}
        answers = {name: await client.call(name) for name in schemas}
    assert {name: kind for name, kind in schemas.items() if kind} == {
        "give_model": "object",
        "give_dataclass": "object",
        "give_list": "array",
    }
    assert answers["give_text"].text == "hello"
    assert answers["give_nothing"].content == []
    assert answers["give_model"].structured == {"total": 3}
    assert answers["give_model"].text == '{"total":3}'
    assert answers["give_dataclass"].structured == {"x": 1, "y": 2}
    assert answers["give_list"].structured == [1, 2, 3]
    assert answers["give_anything"].structured == {"total": 3}
    assert [block["type"] for block in answers["give_block"].content] == ["image"]
    assert [block["type"] for block in answers["give_blocks"].content] == ["text", "resource_link"]
    assert answers["give_result"].is_error
    assert own_meta(answers["give_result"].meta) == {"example.com/took-ms": 12}


async def test_described() -> None:
    """The attributes of a tool are listed."""
    async with connect(load("described").Container()) as client:
        [tool] = await client.list_tools()
        assert (await client.call("close_account", {"tenant": "acme", "number": 7})).content == []
    assert tool["title"] == "Close an account"
    assert tool["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert tool["icons"][0]["src"] == "https://example.com/close.png"
    assert tool["_meta"] == {"example.com/team": "billing"}
    assert tool["inputSchema"]["properties"]["tenant"]["x-mcp-header"] == "Tenant"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("book", {"day": "2026-12-31", "people": 4}, "4 on Thursday"),
        (
            "book",
            {"day": "2026-12-31", "people": "4", "table": 2},
            "Invalid arguments: people: Input should be a valid integer, got string; "
            "table: unknown argument; it takes day, people, window",
        ),
        ("book_kindly", {"day": "2026-12-31", "people": "4"}, "4 on Thursday"),
        ("record", {"kind": "sale", "amount": 3}, "sale, amount"),
    ],
)
async def test_strictness(tool: str, arguments: Mapping[str, Any], expected: str) -> None:
    """Arguments are strict by default, and a tool can relax this."""
    async with connect(load("strictness").Container()) as client:
        assert (await client.call(tool, arguments)).text == expected


async def test_failing(caplog: pytest.LogCaptureFixture) -> None:
    """The text of a ToolError is sent, other errors are logged and hidden."""
    async with connect(load("failing").Container()) as client:
        told = await client.call("track_order", {"number": 8})
        later = await client.call("print_label", {"number": 7})
        hidden = await client.call("refund", {"number": 7})
    assert told.text == "There is no order 8; ask the customer for the number on the receipt."
    assert own_meta(later.meta) == {"axolotl/reason": "overloaded", "axolotl/retryAfterMs": 2000}
    reference = hidden.meta["axolotl/reference"]
    assert re.fullmatch(r"[0-9a-f]{16}", reference)
    assert hidden.text == f"Tool refund failed. Reference: {reference}"
    assert reference in caplog.text
    assert "billing-db-3" in caplog.text


async def test_long_work() -> None:
    """Progress is reported, the timeout is enforced, and a callback is called at the end."""
    module = load("long_work")
    heard: list[Mapping[str, Any]] = []
    async with connect(module.Container()) as client:
        assert (await client.call("translate", {"pages": 2}, on_progress=heard.append)).text == "2 pages"
        assert (await client.call("crunch", {"rounds": 1})).structured == 1
        late = await client.call("crunch", {"rounds": 1000})
        assert (await client.call("run_query")).text == "done"
    assert [(one["progress"], one["total"], one["message"]) for one in heard] == [(1, 2, "page 1"), (2, 2, "page 2")]
    assert late.text == "Tool crunch did not finish within 0.2 seconds"
    query = module.Query()
    query.stop(CancelReason.CLIENT)
    assert query.stopped == "client"


async def test_shop() -> None:
    """Resources are started before the tools and stopped after them."""
    container = load("shop").Container()
    async with connect(container) as client:
        journal = container.journal()
        assert (await client.call("track_order", {"number": 7})).text == "on its way (prices in EUR)"
    assert journal == ["opened orders.log", "closed"]


@pytest.mark.parametrize(
    ("container", "chosen", "expected"),
    [
        ("Container", [], ["find_invoice", "delete_invoice", "echo"]),
        ("Container", ["reading"], ["find_invoice", "echo"]),
        ("OneContainer", [], ["find_invoice", "delete_invoice"]),
        ("OneContainer", ["writing"], ["delete_invoice"]),
    ],
)
async def test_toolsets(container: str, chosen: list[str], expected: list[str]) -> None:
    """Tool sets are selected by name; tools outside of sets are always available."""
    async with connect(getattr(load("toolsets"), container)(), toolsets=chosen) as client:
        assert [tool["name"] for tool in await client.list_tools()] == expected


async def test_sharing() -> None:
    """Tool sets share a service: what one tool does, a tool of another set sees."""
    async with connect(load("sharing").Container()) as client:
        assert (await client.call("is_open", {"number": 7})).structured is True
        await client.call("close_invoice", {"number": 7})
        assert (await client.call("is_open", {"number": 7})).structured is False


async def test_project() -> None:
    """A scan finds the classes and functions of a package and injects their services."""
    async with connect(load("warehouse.container").Container()) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["count_article", "opening_hours"]
        assert (await client.call("count_article", {"article": "bolt"})).structured == 12


async def test_timing_layer(caplog: pytest.LogCaptureFixture) -> None:
    """The layer logs only calls of the tools that it wraps."""
    caplog.set_level("INFO", "acme.timing")
    async with connect(load("timing_layer").Container()) as client:
        await client.call("greet", {"name": "Ada"})
        await client.call("shout", {"text": "hi"})
        await client.get_prompt("ask_for_poem", {"topic": "tea"})
    logged = [re.sub(r"[\d.]+ ms", "… ms", record.message) for record in caplog.records]
    assert logged == ["tool greet took … ms", "prompt ask_for_poem took … ms"]


async def test_configured() -> None:
    """The role `settings` is used."""
    async with ServerHost(load("configured").Container()) as host:
        assert host.settings.server.name == "acme-greeter"
        assert host.settings.limits.timeout_seconds == 10
        assert host.settings.tools.overrides_for("greet").max_concurrency == 4


def test_own_process() -> None:
    """The ASGI application works in any ASGI server."""
    program = "import asyncio, own_process; asyncio.run(own_process.main(0))"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=EXAMPLES, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        started = next(line for line in process.stderr if "running on" in line)
        url = re.search(r"http://[\d.]+:\d+", started)
        assert url is not None
        reply = httpx2.get(f"{url[0]}/")
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert reply.status_code == 404
    assert "the MCP endpoint is /mcp" in reply.text


async def test_changing(capsys: pytest.CaptureFixture[str]) -> None:
    """Tools can be added and removed while the server runs."""
    module = load("changing")
    await module.main()
    assert capsys.readouterr().out == "['greet']\n['wave']\n"
    async with ServerHost(load("greeter").Container()) as host:
        client = InProcessClient(host.handler)
        host.registry.unregister("greet")
        with pytest.raises(RemoteError):
            await client.call("greet")
        await client.close()


async def test_untidy() -> None:
    """The container of the `check` example cannot be served, and all of its problems are reported."""
    with pytest.raises(ConfigurationError) as caught:
        async with ServerHost(load("untidy").Container()):
            pass
    assert "Two tools have the same name: 'find'" in str(caught.value)


async def test_named() -> None:
    """Tool names follow the server's rule, and an invalid name gets an explanation."""
    async with connect(load("named").Container()) as client:
        assert (await client.call("orders.find", {"number": 7})).text == "order 7"
        with pytest.raises(RemoteError, match="must have the form namespace") as caught:
            await client.call("find")
    assert caught.value.code == -32602


async def test_learning() -> None:
    """A tool can change the registry of its server."""
    async with connect(load("learning").Container()) as client:
        assert (await client.call("learn", {"name": "moo", "text": "Moo!"})).text == "created"
        assert (await client.call("moo")).text == "Moo!"
        assert (await client.call("learn", {"name": "learn", "text": "x"})).text == "that name is taken"
