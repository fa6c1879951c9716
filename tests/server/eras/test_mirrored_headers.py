"""Headers that repeat parts of a stateless request."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
import pytest_asyncio
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool
from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.peers.wire import META, VERSION, RawReply, call, message, mirrored, raw_exchange, raw_request
from tests.support.servers.serving import HttpServer, serving
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

UMLAUT = "grüße"


def routed(name: str) -> Any:
    return Field(json_schema_extra={"x-mcp-header": name})


SCHEMA = {
    "properties": {
        "tenant": {"type": "string", "x-mcp-header": "Tenant"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "place": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    }
}


async def answer(arguments: dict[str, Any]) -> str:
    return "routed"


class Typed(BaseModel):
    tenant: Annotated[str, routed("Tenant")]


class TypedTool(ITool[Typed, str]):
    name = "typed"

    async def execute(self, arguments: Typed, context: Context) -> str:
        return arguments.tenant


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with annotated arguments and a tool with a non-ASCII name."""
    tools = (Echo(), SchemaTool("routed", SCHEMA, answer), SchemaTool(UMLAUT, {}, answer), TypedTool())
    async with serving(container_of(*tools), {"protocol": {"ascii_names": False}}) as running:
        yield running


async def post(server: HttpServer, body: bytes, headers: dict[str, str]) -> RawReply:
    return await raw_exchange(server.port, raw_request(body, headers.items()))


def wrapped(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return f"=?base64?{base64.b64encode(data).decode()}?="


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("MCP-Protocol-Version", None),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("MCP-Protocol-Version", "2099-01-01"),
        ("Mcp-Method", None),
        ("Mcp-Method", ""),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "TOOLS/CALL"),
        ("Mcp-Name", None),
        ("Mcp-Name", ""),
        ("Mcp-Name", "other"),
        ("Mcp-Name", "ECHO"),
        ("Mcp-Name", "echo2"),
        ("Mcp-Name", "ech"),
        ("Mcp-Name", "echo, echo"),
        ("Mcp-Name", wrapped("other")),
        ("Mcp-Name", "=?base64?ZWNobw?="),
        ("Mcp-Name", "=?base64?ZWNob===?="),
        ("Mcp-Name", "=?base64?ZWN ob w==?="),
        ("Mcp-Name", "=?base64?ZWNobx==?="),
        ("Mcp-Name", "=?base64?****?="),
        ("Mcp-Name", "=?base64?ZWNobw==?= "[:-3]),
        ("Mcp-Name", "=?BASE64?ZWNobw==?="),
        ("Mcp-Name", "ZWNobw=="),
        ("Mcp-Name", wrapped(b"\xff\xfe")),
        ("Mcp-Name", "\xe9cho"),
    ],
)
async def test_a_header_that_differs_is_rejected(server: HttpServer, header: str, value: str | None) -> None:
    """A routing header that is missing or differs from the body is a mismatch."""
    headers = mirrored(name="echo")
    del headers[header]
    if value is not None:
        headers[header] = value
    reply = await post(server, call("echo", id="me"), headers)
    assert reply.status == 400
    assert json.loads(reply.body)["id"] == "me"
    assert reply.error["code"] == -32020
    assert header.lower() in reply.error["message"].lower()


@pytest.mark.parametrize(
    "changes",
    [
        {"Mcp-Name": wrapped("echo")},
        {"Mcp-Name": "  echo\t"},
        {"mcp-name": "echo"},
        {"MCP-NAME": "echo", "MCP-METHOD": "tools/call", "mcp-protocol-version": VERSION},
        {"Mcp-Param-Unknown": "whatever"},
        {"Mcp-Session-Id": "made up"},
        {"Last-Event-ID": "7"},
    ],
)
async def test_a_header_may_be_written_in_many_ways(server: HttpServer, changes: dict[str, str]) -> None:
    """Case of the name, surrounding spaces, base64 and unknown headers do not matter."""
    lowered = {name.lower() for name in changes}
    headers = {name: value for name, value in mirrored(name="echo").items() if name.lower() not in lowered}
    assert (await post(server, call("echo"), {**headers, **changes})).status == 200


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
async def test_a_repeated_header_is_rejected(server: HttpServer, header: str) -> None:
    """A repeated routing header is a mismatch, even if both values are correct."""
    headers = mirrored(name="echo")
    request = raw_request(call("echo"), [*headers.items(), (header.upper(), headers[header])])
    reply = await raw_exchange(server.port, request)
    assert (reply.status, reply.error["code"]) == (400, -32020)


async def test_a_name_that_is_no_ascii_travels_in_base64(server: HttpServer) -> None:
    """A non-ASCII name is compared after base64 decoding."""
    reply = await post(server, call(UMLAUT), mirrored(name=wrapped(UMLAUT)))
    assert json.loads(reply.body)["result"]["content"] == [{"type": "text", "text": "routed"}]
    assert (await post(server, call(UMLAUT), mirrored(name="gr?sse"))).error["code"] == -32020


async def test_the_headers_are_judged_before_the_version(server: HttpServer) -> None:
    """A header mismatch is reported before an unsupported version."""
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "v999"}
    reply = await post(server, message("tools/list", {"_meta": meta}), mirrored("tools/list"))
    assert reply.error["code"] == -32020


async def test_the_envelope_is_judged_before_the_headers(server: HttpServer) -> None:
    """A missing envelope is reported before a header mismatch."""
    reply = await post(server, message("tools/list", {}), mirrored("tools/call"))
    assert (reply.status, reply.error["code"]) == (400, -32602)


async def test_the_headers_are_judged_before_the_method(server: HttpServer) -> None:
    """A header mismatch is reported before an unknown method."""
    reply = await post(server, message("no/such", {"_meta": META}), mirrored("tools/list"))
    assert reply.error["code"] == -32020


@pytest.mark.parametrize(
    ("method", "params", "name", "code"),
    [
        ("prompts/get", {"name": "a"}, "a", -32601),
        ("prompts/get", {"name": "a"}, "b", -32020),
        ("prompts/get", {"name": "a"}, None, -32020),
        ("resources/read", {"uri": "file:///a"}, "file:///a", -32601),
        ("resources/read", {"uri": "file:///a"}, "file:///b", -32020),
        ("resources/read", {"uri": "file:///ä"}, wrapped("file:///ä"), -32601),
        ("resources/read", {"uri": 7}, None, -32020),
        ("tools/list", {}, None, None),
        ("tools/list", {}, "anything", None),
    ],
)
async def test_which_methods_mirror_a_name(
    server: HttpServer, method: str, params: dict[str, Any], name: str | None, code: int | None
) -> None:
    """Prompts mirror their name and resources their URI; lists mirror nothing."""
    reply = await post(server, message(method, {**params, "_meta": META}), mirrored(method, name))
    assert json.loads(reply.body).get("error", {}).get("code") == code


async def test_a_call_without_a_name_needs_no_header_for_it(server: HttpServer) -> None:
    """A missing name in the body is reported, not a missing header."""
    reply = await post(server, message("tools/call", {"_meta": META}), mirrored())
    assert reply.error["code"] == -32602


async def test_notifications_need_no_headers(server: HttpServer) -> None:
    """Notifications need no headers."""
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": VERSION}
    assert (await post(server, message("notifications/x", {"_meta": META}, id=None), headers)).status == 202


ARGUMENTS = {"tenant": "acme", "count": 42, "dry": True, "place": {"region": "eu"}}
HEADERS = {
    "Mcp-Param-Tenant": "acme",
    "Mcp-Param-Count": "42",
    "Mcp-Param-Dry-Run": "true",
    "Mcp-Param-Region": "eu",
}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        pytest.param(ARGUMENTS, HEADERS, id="all"),
        pytest.param({}, {}, id="none"),
        pytest.param({"tenant": ""}, {"Mcp-Param-Tenant": ""}, id="empty"),
        pytest.param({"tenant": " a"}, {"Mcp-Param-Tenant": wrapped(" a")}, id="blanks in base64"),
        pytest.param({"tenant": "käse"}, {"Mcp-Param-Tenant": wrapped("käse")}, id="base64"),
        pytest.param({"tenant": "acme"}, {"mcp-param-TENANT": wrapped("acme")}, id="needless base64"),
        pytest.param({"count": 42}, {"Mcp-Param-Count": "42.0"}, id="integer as a float"),
        pytest.param({"count": 42.0}, {"Mcp-Param-Count": "42"}, id="float as an integer"),
        pytest.param({"count": -7}, {"Mcp-Param-Count": "-7"}, id="negative"),
        pytest.param({"count": 0}, {"Mcp-Param-Count": "0"}, id="zero"),
        pytest.param({"count": 2**53 - 1}, {"Mcp-Param-Count": str(2**53 - 1)}, id="largest"),
        pytest.param({"dry": False}, {"Mcp-Param-Dry-Run": "false"}, id="false"),
        pytest.param({"place": {}}, {}, id="nested and absent"),
    ],
)
async def test_arguments_that_are_mirrored(
    server: HttpServer, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    """An annotated argument is repeated in its header; an absent one is not."""
    reply = await post(server, call("routed", arguments), {**mirrored(name="routed"), **headers})
    assert (reply.status, json.loads(reply.body)["result"]["content"][0]["text"]) == (200, "routed")


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        pytest.param({"tenant": "acme"}, {}, id="header missing"),
        pytest.param({"place": {"region": "eu"}}, {}, id="nested header missing"),
        pytest.param({"count": 0}, {}, id="header of a zero missing"),
        pytest.param({"dry": False}, {}, id="header of a false missing"),
        pytest.param({"tenant": ""}, {}, id="header of an empty text missing"),
        pytest.param({"tenant": "acme"}, {"Mcp-Param-Tenant": "evil"}, id="another text"),
        pytest.param({"tenant": "acme"}, {"Mcp-Param-Tenant": "ACME"}, id="another case"),
        pytest.param({"place": {"region": "eu"}}, {"Mcp-Param-Region": "us"}, id="another nested text"),
        pytest.param({"region": "eu"}, {"Mcp-Param-Region": "eu"}, id="the right name at the wrong place"),
        pytest.param({}, {"Mcp-Param-Tenant": "acme"}, id="argument missing"),
        pytest.param({"tenant": None}, {"Mcp-Param-Tenant": "null"}, id="argument null"),
        pytest.param({"count": 42}, {"Mcp-Param-Count": "43"}, id="another number"),
        pytest.param({"count": 42}, {"Mcp-Param-Count": "forty-two"}, id="no number"),
        pytest.param({"count": 42}, {"Mcp-Param-Count": "4_2"}, id="a number as Python writes it"),
        pytest.param({"count": 42}, {"Mcp-Param-Count": "+42"}, id="a sign too many"),
        pytest.param({"count": 42}, {"Mcp-Param-Count": "0x2a"}, id="hexadecimal"),
        pytest.param({"count": 2**53}, {"Mcp-Param-Count": str(2**53 + 1)}, id="beyond what floats tell apart"),
        pytest.param({"count": 10**400}, {"Mcp-Param-Count": "1"}, id="a number that no float can hold"),
        pytest.param({"dry": True}, {"Mcp-Param-Dry-Run": "True"}, id="a boolean as Python writes it"),
        pytest.param({"dry": True}, {"Mcp-Param-Dry-Run": "1"}, id="one for true"),
        pytest.param({"dry": True}, {"Mcp-Param-Dry-Run": "false"}, id="another boolean"),
        pytest.param({"tenant": "a"}, {"Mcp-Param-Tenant": "=?base64?YR==?="}, id="base64 that is not canonical"),
        pytest.param({"tenant": "a"}, {"Mcp-Param-Tenant": "=?base64?YQ?="}, id="base64 without padding"),
        pytest.param({"tenant": "a"}, {"Mcp-Param-Tenant": wrapped(b"\xff")}, id="base64 of no UTF-8"),
        pytest.param({"tenant": ["acme"]}, {"Mcp-Param-Tenant": "acme"}, id="argument of another type"),
    ],
)
async def test_arguments_that_are_not_mirrored(
    server: HttpServer, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    """A header that differs from its argument is a mismatch, before the tool runs."""
    reply = await post(server, call("routed", arguments), {**mirrored(name="routed"), **headers})
    assert (reply.status, reply.error["code"]) == (400, -32020)


async def test_a_repeated_argument_header_is_rejected(server: HttpServer) -> None:
    """A repeated argument header is a mismatch."""
    pairs = [*mirrored(name="typed").items(), ("Mcp-Param-Tenant", "acme"), ("Mcp-Param-Tenant", "acme")]
    reply = await raw_exchange(server.port, raw_request(call("typed", {"tenant": "acme"}), pairs))
    assert (reply.status, reply.error["code"]) == (400, -32020)


async def test_a_number_that_is_too_large_is_not_a_server_error(server: HttpServer) -> None:
    """A number that is too large is a mismatch or an invalid argument, not a server error."""
    body = call("routed", {"count": 7}).replace(b'"count": 7', b'"count": 1e999')
    reply = await post(server, body, {**mirrored(name="routed"), "Mcp-Param-Count": "1"})
    assert json.loads(reply.body).get("error", {}).get("code") in (-32020, -32602)


async def test_a_model_may_annotate_its_fields(server: HttpServer) -> None:
    """Annotations of model fields work like those of a raw schema."""
    headers = mirrored(name="typed")
    body = call("typed", {"tenant": "acme"})
    assert (await post(server, body, headers)).error["code"] == -32020
    reply = await post(server, body, {**headers, "Mcp-Param-Tenant": "acme"})
    assert json.loads(reply.body)["result"]["content"][0]["text"] == "acme"


async def test_an_unknown_tool_is_reported_before_its_arguments(server: HttpServer) -> None:
    """An unknown tool is reported before its arguments are compared."""
    reply = await post(server, call("nobody", {"tenant": "x"}), mirrored(name="nobody"))
    assert reply.error["code"] == -32602


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        pytest.param("resources/read", {"uri": "a://secret", "taskId": 5}, "a://open", id="uri"),
        pytest.param("resources/read", {"uri": "a://secret", "taskId": 5}, None, id="uri-without-header"),
        pytest.param("prompts/get", {"name": "secret", "uri": []}, "open", id="prompt"),
        pytest.param("tasks/get", {"taskId": "secret", "uri": 5}, "open", id="task"),
        pytest.param("resources/read", {"uri": 5}, "a://open", id="not-a-string"),
        pytest.param("tasks/cancel", {"taskId": {}}, None, id="object"),
    ],
)
async def test_the_name_is_compared_whatever_the_other_members_are(
    server: HttpServer, method: str, params: dict[str, Any], name: str | None
) -> None:
    """A wrong type of another member does not skip the comparison; a name that is not a string is a mismatch."""
    reply = await post(server, message(method, {**params, "_meta": META}), mirrored(method, name))
    assert (reply.status, reply.error["code"]) == (400, -32020)
