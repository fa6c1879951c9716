"""Responses to denied calls: forbidden, or identical to those for unknown features."""

from collections.abc import Mapping
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import Context, resource, tool
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import ServerHost
from axolotl_server.extension import Extension, ExtensionMethod
from tests.support.servers.restricted_servers import (
    ADA,
    GUESTS,
    PROMPTS,
    RESOURCES,
    ROOT,
    TOOLS,
    Speaker,
    look,
    offering,
    speaking,
)
from tests.support.tools import Probe

FORBIDDEN: Mapping[str, Any] = {**GUESTS, "denied_as": "forbidden"}
OPEN_TOOLS = (look,)
KNOWS_TASKS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@tool(task_support="optional")
async def toil() -> str:
    """Work for long."""
    return "worked"


async def handle_tenant(arguments: dict[str, Any]) -> str:
    """Answer."""
    return "tenant"


TENANT = SchemaTool(
    "tenant",
    {"type": "object", "properties": {"name": {"type": "string", "x-mcp-header": "Tenant"}}, "required": ["name"]},
    handle_tenant,
)

ERAS = pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])

DENIED: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "refund", "arguments": {"amount": 1}}),
    ("tools/call", {"name": "REFUND", "arguments": {"amount": 1}}),
    ("tools/call", {"name": "refund", "arguments": {"amount": "wrong"}}),
    ("tools/call", {"name": "refund", "arguments": "wrong"}),
    ("tools/call", {"name": "refund", "arguments": [1]}),
    ("tools/call", {"name": "refund", "arguments": {}, "requestState": "made up"}),
    ("tools/call", {"name": "note"}),
    ("tools/call", {"name": "toil", "arguments": {}, "task": {}}),
    ("tools/call", {"name": "toil", "arguments": {}, "task": "wrong"}),
    ("tools/call", {"name": "refund", "arguments": {}, "task": {}}),
    ("tools/call", {"name": "tenant", "arguments": {}}),
    ("prompts/get", {"name": "grieve"}),
    ("prompts/get", {"name": "Grieve", "arguments": {"x": 1}}),
    ("resources/read", {"uri": "notes://closed"}),
    ("resources/read", {"uri": "vault://gold"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "grieve"}, "argument": {"name": "x", "value": ""}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "grieve"}, "argument": "wrong"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "vault://{name}"}, "argument": {"name": "name", "value": ""}},
    ),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "vault://x"}, "argument": {}}),
]


@ERAS
@pytest.mark.parametrize(("method", "params"), DENIED)
async def test_not_found_is_as_if_it_were_not_there(method: str, params: dict[str, Any], handshake: bool) -> None:
    """A server with a hidden feature responds exactly like a server without it."""
    everything = offering(tools=(*TOOLS, toil, TENANT))
    # Task capabilities depend on the tools: an allowed one keeps both servers alike.
    alike = tool(name="alike", task_support="optional")(toil.function)
    little = offering(tools=(*OPEN_TOOLS, alike), prompts=PROMPTS[:1], resources=(RESOURCES[0], RESOURCES[2]))
    meta = {"_meta": {"io.modelcontextprotocol/clientCapabilities": KNOWS_TASKS}}
    async with speaking(GUESTS, ADA, handshake=handshake, container=everything) as denied:
        reply = await denied.ask(method, {**params, **meta})
    async with speaking(GUESTS, ADA, handshake=handshake, container=little) as unknown:
        assert reply == await unknown.ask(method, {**params, **meta})
    assert "error" in reply


@ERAS
async def test_an_id_in_use_does_not_reveal_hidden_tools(handshake: bool) -> None:
    """A reused request id gets the same response for a hidden tool as for an unknown one."""
    probe = Probe()
    rules = [{"name": "x", "effect": "deny", "what": {"names": ["refund"]}}]
    container = offering(tools=(*TOOLS, probe))
    async with speaking({"rules": rules, "default": "allow"}, ADA, handshake=handshake, container=container) as speaker:
        speaker.send("tools/call", {"name": "probe", "arguments": {}}, id=7)
        await probe.started.wait()
        for name in ("refund", "pudding"):
            speaker.send("tools/call", {"name": name, "arguments": {}}, id=7)
            assert (await speaker.receive())["error"]["message"] == f"Tool not found: {name}"
        speaker.send("tools/call", {"name": "look", "arguments": {}}, id=7)
        assert "still running" in (await speaker.receive())["error"]["message"]
        probe.release.set()
        assert "result" in await speaker.receive()


@ERAS
@pytest.mark.parametrize(("asked", "principal", "suggested"), [("refun", ROOT, "refund"), ("refun", ADA, None)])
async def test_suggestions_keep_secrets(asked: str, principal: Any, suggested: str | None, handshake: bool) -> None:
    """A similar name is suggested only to callers who may use it."""
    async with speaking(GUESTS, principal, handshake=handshake) as speaker:
        reply = await speaker.ask("tools/call", {"name": asked, "arguments": {}})
        prompt = await speaker.ask("prompts/get", {"name": "grieves"})
    hint = "" if suggested is None else f" (did you mean {suggested!r}?)"
    assert reply["error"]["message"] == f"Tool not found: {asked}{hint}"
    assert ("'grieve'" in prompt["error"]["message"]) is (suggested is not None)


@ERAS
@pytest.mark.parametrize("asked", ["refund", "REFUND", "refunda"])
async def test_a_denied_name_is_not_suggested(asked: str, handshake: bool) -> None:
    """If the most similar name is denied, the next one is suggested."""
    rules = [{"name": "one", "effect": "deny", "what": {"names": ["refund"]}}]
    refunds = tool(name="refunds")(toil.function)
    container = offering(tools=(*TOOLS, refunds))
    async with speaking({"rules": rules, "default": "allow"}, ADA, handshake=handshake, container=container) as speaker:
        reply = await speaker.ask("tools/call", {"name": asked, "arguments": {}})
    assert reply["error"]["message"] == f"Tool not found: {asked} (did you mean 'refunds'?)"


@ERAS
async def test_forbidden(handshake: bool) -> None:
    """A denied tool is a result for the model, denied prompts and resources are errors; no rule is revealed."""
    async with speaking(FORBIDDEN, ADA, handshake=handshake) as speaker:
        called = await speaker.ask("tools/call", {"name": "Refund", "arguments": {"amount": 1}})
        got = await speaker.ask("prompts/get", {"name": "grieve"})
        read = await speaker.ask("resources/read", {"uri": "vault://gold"})
        completed = await speaker.ask(
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "grieve"}, "argument": {"name": "x", "value": ""}},
        )
    assert called["result"]["isError"]
    assert called["result"]["content"] == [{"type": "text", "text": "Tool refund is forbidden for you"}]
    assert called["result"]["_meta"]["axolotl/reason"] == "forbidden"
    assert got["error"] == {
        "code": -32603,
        "message": "Prompt grieve is forbidden for you",
        "data": {"reason": "forbidden"},
    }
    assert read["error"]["message"] == "Resource vault://{name} is forbidden for you"
    assert completed["error"] == got["error"]
    for reply in (called, got, read, completed):
        assert "default" not in str(reply)
        assert "rule" not in str(reply)


@ERAS
@pytest.mark.parametrize("said", [GUESTS, FORBIDDEN])
async def test_allowed_callers(said: Mapping[str, Any], handshake: bool) -> None:
    """An allowed caller can use a feature, in any case of its name."""
    async with speaking(said, ROOT, handshake=handshake) as speaker:
        called = await speaker.ask("tools/call", {"name": "REFUND", "arguments": {"amount": 3}})
        assert called["result"]["content"][0]["text"] == "paid 3"
        assert (await speaker.ask("prompts/get", {"name": "grieve"}))["result"]["messages"]
        assert (await speaker.ask("resources/read", {"uri": "vault://gold"}))["result"]["contents"][0]["text"] == "gold"
        completion = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}}
        assert (await speaker.ask("completion/complete", completion))["result"]["completion"]["values"] == ["A!"]


@ERAS
async def test_a_denied_resource_hides_templates(handshake: bool) -> None:
    """A denied resource cannot be read through a matching template."""
    rules: list[dict[str, Any]] = [{"name": "x", "effect": "deny", "what": {"names": ["notes://closed"]}}]
    wide = [one for one in RESOURCES if one is not RESOURCES[2]]

    async def other(rest: str) -> str:
        return f"leaked {rest}"

    container = offering(resources=[*wide, resource("notes://{rest}")(other)])
    async with speaking({"rules": rules, "default": "allow"}, handshake=handshake, container=container) as speaker:
        assert "leaked" not in str(await speaker.ask("resources/read", {"uri": "notes://closed"}))
        read = await speaker.ask("resources/read", {"uri": "notes://elsewhere"})
        assert read["result"]["contents"][0]["text"] == "leaked elsewhere"
    rules[0]["what"] = {"names": ["notes://{rest}"]}
    async with speaking({"rules": rules, "default": "allow"}, handshake=handshake, container=container) as speaker:
        read = await speaker.ask("resources/read", {"uri": "notes://closed"})
        assert read["result"]["contents"][0]["text"] == "closed"


@ERAS
async def test_scopes_of_a_tool(handshake: bool) -> None:
    """A tool's own scopes are all required, whatever the rules allow."""
    careful = tool(name="careful", scopes=frozenset({"books", "cash"}))(toil.function)
    easy = tool(name="easy", scopes=frozenset({"books"}))(toil.function)
    async with speaking(
        {"default": "allow"}, ADA, handshake=handshake, container=offering(tools=[careful, easy])
    ) as speaker:
        assert await speaker.listed("tools") == ["easy"]
        assert "result" in await speaker.ask("tools/call", {"name": "easy", "arguments": {}})
        reply = await speaker.ask("tools/call", {"name": "careful", "arguments": {}})
    assert reply["error"]["message"] == "Tool not found: careful"


class Receipts(Extension):
    """An extension with a method."""

    identifier = "com.example/receipts"

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        return {"receipts/print": self._print}

    async def _print(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"printed": True}


@pytest.mark.parametrize(("denied_as", "code"), [("forbidden", -32603), ("not_found", -32601)])
async def test_methods_of_extensions(denied_as: str, code: int) -> None:
    """A denied extension method is rejected, or unknown if denied features are hidden."""
    rules = [{"name": "root", "effect": "allow", "who": {"subjects": ["root"]}, "what": {"kinds": ["extension"]}}]
    meta: Mapping[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"com.example/receipts": {}}}
    }
    container = offering()
    container.extensions = providers.List(providers.Singleton(Receipts))
    async with ServerHost(container, flags={"authorization": {"rules": rules, "denied_as": denied_as}}) as host:
        root, ada = Speaker(host, ROOT), Speaker(host, ADA)
        assert (await root.ask("receipts/print", {"_meta": meta}))["result"]["printed"]
        refused = await ada.ask("receipts/print", {"_meta": meta})
        unknown = await ada.ask("receipts/paint", {"_meta": meta})
        await root.close()
        await ada.close()
    assert refused["error"]["code"] == code
    if denied_as == "not_found":
        assert str(refused).replace("print", "paint") == str(unknown)
