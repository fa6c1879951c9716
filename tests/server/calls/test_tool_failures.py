"""Unexpected tool failures: only their own call fails."""

import asyncio
import inspect
import json
import logging
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from axolotl_core import Context, Forbidden, ITool, NoArguments, ProtocolError, ToolError, tool
from axolotl_core.content import TextContent, ToolResult
from axolotl_core.features.attributes import relative_path
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import ServerHost, connect
from tests.support.peers.memory_peer import Peer
from tests.support.peers.wire import call, mirrored, raw_exchange, raw_request
from tests.support.servers.serving import serving
from tests.support.tools import Echo, container_of

SECRET = "swordfish"


class Worst(BaseException):
    """An exception that does not derive from Exception."""


RAISED: list[BaseException] = [
    SystemExit(SECRET),
    SystemExit(0),
    KeyboardInterrupt(SECRET),
    GeneratorExit(SECRET),
    asyncio.CancelledError(SECRET),
    Worst(SECRET),
    BaseExceptionGroup(SECRET, [SystemExit(SECRET)]),
    StopIteration(SECRET),
    StopAsyncIteration(SECRET),
    RecursionError(SECRET),
    MemoryError(SECRET),
    AssertionError(SECRET),
    UnicodeEncodeError("utf-8", SECRET, 0, 1, SECRET),
    OSError(2, SECRET),
    TimeoutError(SECRET),
]


class Raising(ITool[NoArguments, str]):
    """Raises, on the loop or in a thread."""

    name = "raising"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        await asyncio.sleep(0)
        raise self.error


def plain(error: BaseException) -> ITool[Any, Any]:
    @tool(name="raising")
    def raise_it() -> str:
        raise error

    return raise_it


def named(error: BaseException) -> str:
    return type(error).__name__


@pytest.mark.parametrize("kind", ["loop", "thread with a loop", "plain function"])
@pytest.mark.parametrize("error", RAISED, ids=named)
async def test_only_the_call_fails(error: BaseException, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The call is answered with a reference, the log has the details, and the server keeps running."""
    raising = plain(error) if kind == "plain function" else Raising(error)
    if kind == "thread with a loop":
        raising.execution = "thread"
    async with ServerHost(container_of(raising, Echo())) as host:
        peer = Peer(host)
        with caplog.at_level(logging.ERROR, "axolotl"):
            result = (await peer.reply(peer.call("raising")))["result"]
        assert result["isError"] is True
        reference = result["_meta"]["axolotl/reference"]
        assert result["content"][0]["text"] == f"Tool raising failed. Reference: {reference}"
        assert SECRET not in json.dumps(result)
        assert reference in caplog.text
        assert (await peer.reply(peer.call("echo", {"text": "on"})))["result"]["content"][0]["text"] == "on"
        assert len(host.handler.inflight) == 0
        await peer.close()


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), Worst()], ids=named)
async def test_an_http_server_survives_system_exit(error: BaseException) -> None:
    """An exception such as SystemExit ends only its call."""
    async with serving(container_of(Raising(error), Echo())) as server:
        reply = await raw_exchange(server.port, raw_request(call("raising"), mirrored(name="raising").items()))
        assert json.loads(reply.body)["result"]["isError"] is True
        reply = await raw_exchange(server.port, raw_request(call("echo"), mirrored(name="echo").items()))
        assert reply.status == 200


async def test_the_text_of_a_tool_error_is_public() -> None:
    """The text and details of a ToolError reach the model."""
    async with ServerHost(container_of(Raising(Forbidden("not you", meta={"a": 1})))) as host:
        peer = Peer(host)
        result = (await peer.reply(peer.call("raising")))["result"]
        assert result["content"] == [{"type": "text", "text": "not you"}]
        assert result["_meta"]["a"] == 1
        await peer.close()


async def test_a_tool_may_raise_a_protocol_error() -> None:
    """A protocol error is sent as one."""
    async with ServerHost(container_of(Raising(ProtocolError("told", data={"why": 1})))) as host:
        peer = Peer(host)
        reply = await peer.reply(peer.call("raising", id="x"))
        assert reply == {
            "jsonrpc": "2.0",
            "id": "x",
            "error": {"code": -32603, "message": "told", "data": {"why": 1}},
        }
        await peer.close()


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ToolError("half \ud800"), id="text that is no Unicode"),
        pytest.param(ToolError("odd", meta={"thing": object()}), id="details that are no JSON"),
        pytest.param(ProtocolError("odd", data={"thing": object()}), id="data that is no JSON"),
        pytest.param(ProtocolError("half \ud800"), id="a message that is no Unicode"),
    ],
)
async def test_an_error_that_cannot_be_written_is_still_answered(error: Exception) -> None:
    """A call is answered even if its error cannot be encoded."""
    async with ServerHost(container_of(Raising(error), Echo())) as host:
        peer = Peer(host)
        reply = await peer.reply(peer.call("raising", id=5))
        assert reply["id"] == 5
        assert (await peer.reply(peer.call("echo", id=6)))["id"] == 6
        await peer.close()


def give(value: Any) -> ITool[Any, Any]:
    async def giving(arguments: dict[str, Any]) -> Any:
        return value

    return SchemaTool("giving", {}, giving)


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="an object"),
        pytest.param(lambda: None, id="a function"),
        pytest.param(deep(100_000), id="nested without end"),
        pytest.param(b"\xff\xfe", id="bytes that are no text"),
        pytest.param(ToolResult(content=("text",)), id="content that is no block"),  # type: ignore[arg-type]
        pytest.param(ToolResult(structured=object()), id="structure that is no JSON"),
        pytest.param(ToolResult(meta={"a": object()}), id="details that are no JSON"),
    ],
)
async def test_an_output_that_cannot_be_written_fails_its_call(value: Any) -> None:
    """An output that cannot be encoded as JSON fails its call only."""
    async with ServerHost(container_of(give(value), Echo())) as host:
        peer = Peer(host)
        result = (await peer.reply(peer.call("giving")))["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("Tool giving failed. Reference: ")
        assert "result" in await peer.reply(peer.call("echo"))
        await peer.close()


class Sum(BaseModel):
    total: int
    unit: str


@tool
async def add_up(what: str) -> Sum:
    """Return something else than declared."""
    return {"total": SECRET} if what == "fields" else object()  # type: ignore[return-value]


@tool
async def anything() -> Any:
    """Return something that is not JSON."""
    return object()


class Price(BaseModel):
    net: float
    gross: float | None = None
    known: Any = None


class Offer(BaseModel):
    prices: list[Price]


class Binary(BaseModel):
    data: bytes


class Written(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    rate: float


HALF_PAIR = "which is not JSON: a text has half of a surrogate pair"
UNSENDABLE_OUTPUTS = [
    pytest.param(Price, Price(net=math.nan), "is not JSON: net is nan, and JSON has no such number", id="NaN"),
    pytest.param(Price, {"net": -math.inf}, "is not JSON: net is -inf", id="infinity in a dict for a model"),
    pytest.param(Offer, Offer(prices=[Price(net=1, gross=math.inf)]), ": prices.0.gross is inf", id="in a list"),
    pytest.param(Price, Price(net=1, known=[math.nan]), ": known.0 is nan", id="in a field of any type"),
    pytest.param(Written, Written(rate=math.nan), ": rate is nan", id="in a model that writes it as such"),
    pytest.param(list[float | None], [None, math.nan], ": 1 is nan", id="after a null"),
    pytest.param(float, math.nan, ": it is nan", id="alone"),
    pytest.param(dict[str, Any], {"a": {"b": math.nan}}, ": a.b is nan", id="in a dict"),
    pytest.param(Any, [None, math.inf], ": 1 is inf", id="in an output of any type"),
    pytest.param(Any, {"price": Price(net=math.nan)}, ": price.net is nan", id="in a model in a dict"),
    pytest.param(ToolResult, ToolResult(structured={"a": math.nan}), ": a is nan", id="in a whole result"),
    pytest.param(str, "half \ud800", HALF_PAIR, id="half a surrogate pair"),
    pytest.param(Any, ["\udcff"], HALF_PAIR, id="half a pair in any type"),
    pytest.param(ToolResult, ToolResult((TextContent("\ud800"),)), HALF_PAIR, id="half a pair in a block"),
    pytest.param(
        Binary, Binary(data=b"\xff"), "bytes that are not UTF-8: set ser_json_bytes=", id="bytes that are no text"
    ),
]


class Returning(ITool[NoArguments, Any]):
    """Returns an output of a declared type."""

    name = "returning"

    def __init__(self, declared: Any, output: Any) -> None:
        self.output_model = declared  # type: ignore[misc]
        self.output = output

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        return self.output


@pytest.mark.parametrize(("declared", "output", "text"), UNSENDABLE_OUTPUTS)
async def test_the_log_says_what_json_cannot_hold(
    caplog: pytest.LogCaptureFixture, declared: Any, output: Any, text: str
) -> None:
    """Outputs with NaN, infinity or half of a surrogate pair do not fit; the caller gets a reference."""
    async with connect(container_of(Returning(declared, output))) as client:
        result = await client.call("returning")
    assert result.is_error
    assert result.text.startswith("Tool returning failed. Reference: ")
    assert text in caplog.text
    assert "test_tool_failures.py:" in caplog.text


@pytest.mark.parametrize(
    ("declared", "output", "expected"),
    [
        pytest.param(Offer, Offer(prices=[Price(net=1)]), {"prices": [{"net": 1, "gross": None, "known": None}]}),
        pytest.param(list[float | None], [None, 0.5], [None, 0.5]),
        pytest.param(Price, Price(net=1, known="NaN"), {"net": 1, "gross": None, "known": "NaN"}),
        pytest.param(dict[str, Any], {"Infinity": None}, {"Infinity": None}),
    ],
)
async def test_a_null_is_sent(declared: Any, output: Any, expected: Any) -> None:
    """Values that are absent stay null."""
    async with connect(container_of(Returning(declared, output))) as client:
        assert (await client.call("returning")).structured == expected


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        (
            "add_up",
            {"what": "fields"},
            "which does not fit its output type Sum: total: Input should be a valid integer",
        ),
        ("add_up", {"what": "type"}, "which does not fit its output type Sum: Input should be a valid dictionary"),
        ("anything", {}, "which is not JSON: Unable to serialize unknown type: <class 'object'>"),
    ],
)
async def test_the_log_says_what_does_not_fit(
    caplog: pytest.LogCaptureFixture, name: str, arguments: dict[str, Any], text: str
) -> None:
    """The log has the type, the place and the part that does not fit, but no value and no traceback of the server."""
    async with ServerHost(container_of(add_up, anything)) as host:
        peer = Peer(host)
        await peer.reply(peer.call(name, arguments))
        await peer.close()
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is None
    assert text in record.getMessage()
    assert "test_tool_failures.py:" in record.getMessage()
    assert SECRET not in record.getMessage()


class Late(ITool[NoArguments, Sum]):
    """Forgets to await."""

    name = "late"

    async def execute(self, arguments: NoArguments, context: Context) -> Sum:
        return later()  # type: ignore[return-value]


class LateThread(ITool[NoArguments, str]):
    """Returns a coroutine from a plain function."""

    name = "late"

    def execute(self, arguments: NoArguments, context: Context) -> str:
        return later()  # type: ignore[return-value]


class Pieces(ITool[NoArguments, Sum]):
    """Returns a generator."""

    name = "late"

    async def execute(self, arguments: NoArguments, context: Context) -> Sum:
        return pieces()  # type: ignore[return-value]


class Waiting(ITool[NoArguments, Any]):
    """Returns a future."""

    name = "late"

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        return asyncio.get_running_loop().create_future()


async def later() -> Sum:
    return Sum(total=1, unit="m")


async def pieces() -> AsyncIterator[Sum]:
    yield Sum(total=1, unit="m")


@tool(name="late")
def late_function() -> Sum:
    """Return a coroutine."""
    return later()  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("late", "text"),
    [
        pytest.param(Late(), "it returned the coroutine later ({}): await it, in an async def", id="async"),
        pytest.param(LateThread(), "it returned the coroutine later ({}): await it, in an async def", id="plain"),
        pytest.param(late_function, "it returned the coroutine later ({}): await it, in an async def", id="function"),
        pytest.param(Waiting(), "it returned the Future ({}): await it, in an async def", id="future"),
        pytest.param(
            Pieces(),
            "it returned the async generator pieces ({}): make the tool a subclass of IStreamTool[Input, Item] with "
            "async def stream",
            id="generator",
        ),
    ],
)
async def test_the_log_names_a_missing_await(
    caplog: pytest.LogCaptureFixture, late: ITool[Any, Any], text: str
) -> None:
    """The log has what was returned, the line of the code that returned it, and what to write."""
    async with ServerHost(container_of(late)) as host:
        peer = Peer(host)
        assert (await peer.reply(peer.call("late", {})))["result"]["isError"]
        await peer.close()
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is None
    code = inspect.unwrap(getattr(late, "function", type(late).execute)).__code__
    assert text.format(f"{relative_path(code.co_filename)}:{code.co_firstlineno}") in record.getMessage()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"a": (1, 2)}, '{"a":[1,2]}', id="a tuple"),
        pytest.param(True, "true", id="a boolean"),
    ],
)
async def test_an_output_that_nearly_has_a_form_is_given_one(value: Any, text: str) -> None:
    """Values without an exact JSON form are converted."""
    async with ServerHost(container_of(give(value))) as host:
        peer = Peer(host)
        result = (await peer.reply(peer.call("giving")))["result"]
        assert result["content"][0]["text"] == text
        await peer.close()


class Words(str):
    """A subclass of str, as some parsers return."""

    def __str__(self) -> str:
        return "something else"


class Number(float):
    """A subclass of float, as number libraries return."""


async def test_text_and_numbers_may_be_of_other_classes() -> None:
    """Subclasses of JSON types are encoded by their value, in outputs, blocks, details and progress."""

    class Odd(ITool[NoArguments, str]):
        name = "odd"

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            context.report_progress(Number(0.5), message=Words("half"))
            return Words("words")

    result = ToolResult((TextContent(Words("block")),), {"n": Number(2)}, meta={"n": Number(1)})
    async with ServerHost(container_of(Odd(), give(result))) as host:
        peer = Peer(host)
        peer.call("odd", progressToken="t")
        assert (await peer.receive())["params"] == {"progressToken": "t", "progress": 0.5, "message": "half"}
        assert (await peer.receive())["result"]["content"][0]["text"] == "words"
        given = (await peer.reply(peer.call("giving")))["result"]
        assert (given["content"][0]["text"], given["structuredContent"], given["_meta"]["n"]) == ("block", {"n": 2}, 1)
        await peer.close()


async def test_a_stream_that_breaks_drops_its_pieces() -> None:
    """An async generator that raises fails its call, and its earlier output is dropped."""

    @tool
    async def breaking() -> AsyncIterator[str]:
        yield SECRET
        raise SystemExit(1)

    async with ServerHost(container_of(breaking)) as host:
        peer = Peer(host)
        reply = await peer.reply(peer.call("breaking"))
        assert reply["result"]["isError"] is True
        assert SECRET not in json.dumps(reply)
        await peer.close()
