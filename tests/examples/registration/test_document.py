"""The requirement "工具注册与调用机制", statement by statement, on the wire of every revision that has its messages."""

import asyncio
import importlib
import inspect
import json
import re
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import Context, ITool, NoArguments, ToolRegistry
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, Revision
from axolotl_examples.registration import Container
from axolotl_examples.registration.echo import Echo
from axolotl_server import DefaultHandler
from tests.examples.registration.call_logs import ListCallLog
from tests.examples.registration.dialogue import Dialogue, in_memory

pytestmark = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.name)


class Broken(ITool[NoArguments, str]):
    name = "broken"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        raise LookupError("the password is swordfish")


class Pauses:
    """Pauses that a test can observe and end."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[float] = asyncio.Queue()
        self.over = asyncio.Event()
        self.interrupted = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.begun.put_nowait(seconds)
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.interrupted.set()
            raise


def make_container(**services: Any) -> Any:
    container: Any = Container()
    for name, service in services.items():
        getattr(container, name).override(providers.Object(service))
    return container


async def delay(client: Dialogue, id: str) -> None:
    params = {"name": "delayed_echo", "arguments": {"text": "later", "seconds": 60}}
    await client.send("tools/call", params, id=id)


class TestRoles:
    """关键角色 and 类型与职责."""

    async def test_name(self, revision: Revision) -> None:
        """Name: 工具唯一标识 — tool names are case-insensitive, and are listed as declared."""
        async with in_memory(Container(), revision) as client:
            replies = [await client.call(name, {"text": "hi"}) for name in ("echo", "Echo", "ECHO")]
            assert (await client.names()).count("echo") == 1
        assert [reply["result"]["content"][0]["text"] for reply in replies] == ["hi"] * 3

    async def test_register(self, revision: Revision) -> None:
        """Register(ITool): 单个工具注册（同名去重） — a second tool with the same name, in any case, is not added."""
        container = make_container()

        class Shout(Echo):
            name = "ECHO"

        async with in_memory(container, revision) as client:
            before = await client.names()
            assert container.tool_registry().register(Shout()) is False
            assert await client.names() == before

    async def test_register_range(self, revision: Revision) -> None:
        """RegisterRange(IEnumerable<ITool>): 批量注册 — several tools are added at once, except existing ones."""
        container = make_container()

        class Again(Echo):
            name = "again"

        async with in_memory(container, revision) as client:
            assert container.tool_registry().register_range([Again(), Broken(), Echo()]) == 2
            assert (await client.names())[-2:] == ["again", "broken"]

    async def test_try_get(self, revision: Revision) -> None:
        """TryGet(name, out tool): 按名称查询 — a tool is found by its name in any case; otherwise None is returned."""
        container = make_container()
        async with in_memory(container, revision) as client:
            found = await client.call("find_tool", {"name": "ECHO"})
            missing = await client.call("find_tool", {"name": "nobody"})
            assert container.tool_registry().try_get("ECHO").name == "echo"
            assert container.tool_registry().try_get("nobody") is None
        text = found["result"]["content"][0]["text"]
        assert text == '{"name":"echo","description":"回显输入文本","required":["text"]}'
        assert missing["result"] == {"content": [{"type": "text", "text": "没有名为 nobody 的工具"}], "isError": True}

    async def test_hidden(self, revision: Revision) -> None:
        """The two tools show only what the caller may use; a hidden tool looks like one that does not exist."""
        rules = [
            {"name": "no echo", "effect": "deny", "what": {"names": ["echo"]}},
            {"name": "rest", "effect": "allow"},
        ]
        async with in_memory(Container(), revision, {"authorization": {"rules": rules}}) as client:
            found = await client.call("find_tool", {"name": "echo"})
            names = await client.call("tool_names")
            listed = await client.names()
        assert found["result"] == {"content": [{"type": "text", "text": "没有名为 echo 的工具"}], "isError": True}
        assert json.loads(names["result"]["content"][0]["text"]) == listed
        assert "echo" not in listed

    async def test_get_all(self, revision: Revision) -> None:
        """GetAll(): 列出所有已注册工具 — all tools are listed, in the order of registration."""
        container = make_container()
        async with in_memory(container, revision) as client:
            listed = await client.names()
            assert [tool.name for tool in container.tool_registry().get_all()] == listed
        assert listed == ["echo", "delayed_echo", "repeat", "reverse", "find_tool", "tool_names"]

    async def test_initialize(self, revision: Revision) -> None:
        """initialize: 返回协议版本、能力宣告（tools）."""
        async with in_memory(Container(), revision, ready=False) as client:
            result = (await client.begin())["result"]
        assert result["protocolVersion"] == revision.name
        assert "tools" in result["capabilities"]


class TestMessages:
    """协议交互."""

    async def test_list(self, revision: Revision) -> None:
        """The example request is answered with the example tool, whose schema allows no other properties."""
        async with in_memory(Container(), revision) as client:
            reply = await client.ask("tools/list", {}, id="1")
        assert (reply["jsonrpc"], reply["id"]) == ("2.0", "1")
        assert reply["result"]["tools"][0] == {
            "name": "echo",
            "description": "回显输入文本",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "要回显的内容"}},
                "required": ["text"],
                "additionalProperties": False,
            },
        }
        for tool in reply["result"]["tools"]:
            assert tool["name"]
            assert tool["description"]
            assert tool["inputSchema"]["type"] == "object"

    async def test_call(self, revision: Revision) -> None:
        """The example request is answered exactly as in the document."""
        async with in_memory(Container(), revision) as client:
            reply = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "hello"}}, id="2")
        assert reply == {"jsonrpc": "2.0", "id": "2", "result": {"content": [{"type": "text", "text": "hello"}]}}


class TestErrors:
    """错误与异常."""

    async def test_not_found(self, revision: Revision) -> None:
        """方法未找到: code = -32601（如未知 method 或未知工具名）."""
        async with in_memory(Container(), revision) as client:
            method = await client.ask("tools/unknown")
            tool = await client.call("unknown_tool")
        assert method["error"] == {"code": -32601, "message": "Method not found: tools/unknown"}
        assert tool["error"] == {"code": -32601, "message": "Tool not found: unknown_tool"}

    @pytest.mark.parametrize(
        "params",
        [{}, {"arguments": {"text": "x"}}, {"name": 5}, {"name": "echo", "arguments": [1]}],
        ids=["nothing", "no-name", "name-type", "arguments-type"],
    )
    async def test_invalid_params(self, revision: Revision, params: Any) -> None:
        """无效参数: code = -32602（缺失 name … 或类型不匹配）, if the request itself is invalid."""
        async with in_memory(Container(), revision) as client:
            reply = await client.ask("tools/call", params)
        assert reply["error"]["code"] == -32602

    @pytest.mark.parametrize(
        ("params", "problem"),
        [
            ({"name": "echo"}, "text: required, but missing"),
            ({"name": "echo", "arguments": {"text": 5}}, "text: Input should be a valid string, got integer"),
        ],
        ids=["missing", "type"],
    )
    async def test_invalid_arguments(self, revision: Revision, params: Any, problem: str) -> None:
        """无效参数: … arguments … 类型不匹配 is -32602 too, except in revisions where the model gets a result."""
        async with in_memory(Container(), revision) as client:
            reply = await client.ask("tools/call", params)
        told = f"Invalid arguments: {problem}"
        if revision.argument_errors_as_results:
            assert reply["result"] == {"content": [{"type": "text", "text": told}], "isError": True}
        else:
            assert reply["error"] == {"code": -32602, "message": told}

    async def test_exception(self, revision: Revision, caplog: pytest.LogCaptureFixture) -> None:
        """执行异常: 需记录日志并返回错误对象 — the log has the details, the caller only a reference."""
        container = make_container()
        async with in_memory(container, revision) as client:
            container.tool_registry().register(Broken())
            reply = await client.call("broken")
        assert "LookupError: the password is swordfish" in caplog.text
        assert reply["result"]["isError"] is True
        match = re.fullmatch(r"Tool broken failed\. Reference: (\w+)", reply["result"]["content"][0]["text"])
        assert match is not None
        assert match[1] in caplog.text


class TestAdvice:
    """注册与使用建议."""

    async def test_registered_at_start(self, revision: Revision) -> None:
        """注册位置：应用启动时统一注册 — all tools are registered before the first request."""
        async with in_memory(Container(), revision) as client:
            assert len(await client.names()) == 6

    async def test_names(self, revision: Revision) -> None:
        """命名约定：Name 使用小写短名，避免空格与特殊字符."""
        async with in_memory(Container(), revision) as client:
            assert all(re.fullmatch("[a-z_]{1,16}", name) for name in await client.names())

    async def test_schemas(self, revision: Revision) -> None:
        """Schema 质量：尽量为每个参数提供 type/description/required."""
        async with in_memory(Container(), revision) as client:
            tools = (await client.ask("tools/list"))["result"]["tools"]
        for schema in (tool["inputSchema"] for tool in tools):
            for name, argument in schema["properties"].items():
                assert argument["type"]
                assert argument["description"]
                assert name in schema["required"] or "default" in argument

    async def test_cancellation(self, revision: Revision) -> None:
        """工具内部应支持 CancellationToken — a canceled call ends at once and gets no reply."""
        pauses = Pauses()
        async with in_memory(make_container(pause=pauses), revision) as client:
            await delay(client, "slow")
            assert await pauses.begun.get() == 60
            await client.send("notifications/cancelled", {"requestId": "slow"})
            await pauses.interrupted.wait()
            assert (await client.call("echo", {"text": "next"}))["result"]["content"][0]["text"] == "next"
            assert client.notices == []

    async def test_timeout(self, revision: Revision) -> None:
        """必要时在 DefaultHandler 层加入超时编排 — the server stops a call that times out, with a message."""
        pauses = Pauses()
        limits = {"tools": {"delayed_echo": {"timeout_seconds": 0.01}}}
        async with in_memory(make_container(pause=pauses), revision, limits) as client:
            await delay(client, "late")
            result = (await client.hear())["result"]
        assert result["content"][0]["text"] == "Tool delayed_echo did not finish within 0.01 seconds"
        assert result["isError"] is True
        assert pauses.interrupted.is_set()


class TestExtensions:
    """扩展方向, as far as it is implemented."""

    async def test_scan(self, revision: Revision) -> None:
        """特性驱动注册：由扫描器自动注册 — the scan registers the tool classes and the marked function of a module."""
        async with in_memory(Container(), revision) as client:
            assert (await client.names())[1:4] == ["delayed_echo", "repeat", "reverse"]

    async def test_schema_from_dto(self, revision: Revision) -> None:
        """DTO → Schema 生成 — the schema has the types, constraints, defaults and descriptions of the model."""
        async with in_memory(Container(), revision) as client:
            tools = (await client.ask("tools/list"))["result"]["tools"]
        [schema] = [tool["inputSchema"] for tool in tools if tool["name"] == "repeat"]
        assert schema["properties"] == {
            "text": {"type": "string", "description": "要重复的内容", "minLength": 1},
            "times": {"type": "integer", "description": "重复次数", "minimum": 1, "maximum": 100},
            "separator": {"type": "string", "description": "分隔符", "default": " "},
        }
        assert schema["required"] == ["text", "times"]

    async def test_call_log(self, revision: Revision) -> None:
        """审计日志 — every call that reaches its tool is logged with the declared name."""
        log = ListCallLog()
        container = make_container(call_log=log)
        async with in_memory(container, revision) as client:
            container.tool_registry().register(Broken())
            await client.call("ECHO", {"text": "hi"})
            await client.call("find_tool", {"name": "nobody"})
            await client.call("broken")
            await client.call("echo", {"text": 5})
        assert [(call.tool, call.principal, call.outcome) for call in log.calls] == [
            ("echo", "anonymous", "answered"),
            ("find_tool", "anonymous", "refused"),
            ("broken", "anonymous", "failed"),
        ]

    async def test_quota(self, revision: Revision) -> None:
        """资源配额：并发限制 — a call beyond the concurrency limit is rejected and can be retried."""
        pauses = Pauses()
        async with in_memory(make_container(pause=pauses), revision) as client:
            await delay(client, "first")
            await delay(client, "second")
            await delay(client, "third")
            refused = await client.hear()
            pauses.over.set()
            assert {(await client.hear())["id"], (await client.hear())["id"]} == {"first", "second"}
        assert refused["id"] == "third"
        assert refused["result"]["content"][0]["text"] == "delayed_echo is busy: it runs at most 2 at once; try again"
        assert refused["result"]["_meta"] == {"axolotl/reason": "overloaded", "axolotl/retryAfterMs": 1000}


def test_places(revision: Revision) -> None:
    """相关实现位置 — the three parts are in the expected packages."""
    assert inspect.getmodule(ITool) is importlib.import_module("axolotl_core.tools.tool")
    assert inspect.getmodule(ToolRegistry) is importlib.import_module("axolotl_core.registry")
    assert inspect.getmodule(DefaultHandler) is importlib.import_module("axolotl_server.handler")
