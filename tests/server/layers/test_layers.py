"""The layers around a tool: their order, limits and overrides."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, ITool, Refused
from axolotl_core.errors import Overloaded
from axolotl_core.features.spec import FeatureSpec, Limits, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke, type_of_layer
from axolotl_server import ServerHost, connect
from axolotl_server.hosting.assembly import ServerAssembly
from axolotl_server.hosting.roles import Roles
from axolotl_server.layers.approval import ApprovalLayer
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.layers.deadline import validation
from axolotl_server.layers.idempotency.layer import IdempotencyLayer
from axolotl_server.layers.retry import RetryLayer
from axolotl_server.settings.server import ServerSettings
from tests.support.peers.memory_peer import Peer
from tests.support.tools import Echo, Probe, container_of


class Numbered(BaseModel):
    number: int = 0


class Square(ITool[Numbered, int]):
    name = "square"

    async def execute(self, arguments: Numbered, context: Context) -> int:
        return arguments.number**2


class Noting(ILayer):
    """Records when calls enter and leave."""

    def __init__(self, label: str, notes: list[str]) -> None:
        self._label = label
        self._notes = notes

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def noted(call: Call) -> Any:
            self._notes.append(f"{self._label} in {call.arguments!r}")
            try:
                return await call_next(call)
            finally:
                self._notes.append(f"{self._label} out")

        return noted


class Only(ILayer):
    """Wraps one tool, and records which tools it was asked about."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.asked: list[str] = []

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        self.asked.append(spec.name)
        if spec.name != self._name:
            return call_next

        async def refused(call: Call) -> Any:
            raise Refused("not today", meta={"by": spec.name})

        return refused


def spec_of(tool: ITool[Any, Any], **limits: Any) -> ToolSpec:
    plain: dict[str, Any] = {
        "timeout_seconds": 1.0,
        "max_concurrency": None,
        "execution": "loop",
        "coerce_arguments": False,
    }
    return ToolSpec.of(tool, Limits(**{**plain, **limits}))


async def innermost(call: Call) -> Any:
    return call.arguments


def test_the_order_of_the_defaults() -> None:
    """Arguments are validated first, then the timeout starts, then a slot is taken, then custom layers run."""
    mine = Noting("mine", [])
    assembly = ServerAssembly(ServerSettings(), Roles(layers=(mine,)))
    first, second, *others = assembly.layers.inner
    assert assembly.layers.outer == ()
    assert (first, second) == (validation, assembly.deadlines.timeout)
    assert [type_of_layer(layer) for layer in others] == [
        IdempotencyLayer,
        ApprovalLayer,
        ConcurrencyLayer,
        BreakerLayer,
        RetryLayer,
        Noting,
    ]


def test_a_layer_without_concern_vanishes() -> None:
    """A tool without a limit is not wrapped by the concurrency layer."""
    assert ConcurrencyLayer().wrap(spec_of(Echo()), innermost) is innermost
    assert ConcurrencyLayer().wrap(spec_of(Echo(), max_concurrency=1), innermost) is not innermost


async def test_a_layer_may_be_a_function() -> None:
    """A plain function wraps a feature like a layer with a class, and is named by itself."""
    asked: list[str] = []

    def loud(spec: FeatureSpec, call_next: Invoke) -> Invoke:
        asked.append(spec.name)

        async def doubled(call: Call) -> Any:
            return 2 * await call_next(call)

        return doubled if spec.name == "square" else call_next

    async with ServerHost(container_of(Square(), Echo(), layers=[loud])) as host:
        square, echo = host.assembly.tools.find("square"), host.assembly.tools.find("echo")
        assert square is not None
        assert echo is not None
        assert sorted(asked) == ["echo", "square"]
        assert loud in square.layers
        assert loud not in echo.layers
    async with connect(container_of(Square(), layers=[loud])) as client:
        assert (await client.call("square", {"number": 3})).structured == 18


async def test_layers_of_the_user_run_in_their_order() -> None:
    """The first custom layer is the outermost, and all get valid arguments."""
    notes: list[str] = []
    layers = [Noting("outer", notes), Noting("inner", notes)]
    async with connect(container_of(Square(), layers=layers)) as client:
        assert (await client.call("square", {"number": 3})).structured == 9
        assert notes == ["outer in Numbered(number=3)", "inner in Numbered(number=3)", "inner out", "outer out"]
        notes.clear()
        assert (await client.call("square", {"number": "x"})).is_error
        assert notes == []


async def test_layers_are_folded_once() -> None:
    """Layers are composed once at the start, not per call."""
    layer = Only("echo")
    async with connect(container_of(Echo(), Square(), layers=[layer])) as client:
        assert layer.asked == ["echo", "square"]
        refused = await client.call("ECHO", {"text": "x"})
        assert (refused.text, refused.is_error, refused.meta["by"]) == ("not today", True, "echo")
        assert (await client.call("square", {"number": 2})).structured == 4
        assert layer.asked == ["echo", "square"]


async def test_a_layer_is_asked_about_tools_that_come_later() -> None:
    """Tools that are registered while the server runs are wrapped too."""
    layer = Only("late")
    async with ServerHost(container_of(Echo(), layers=[layer])) as host:
        late = Square()
        late.name = "late"
        host.registry.register(late)
        assert layer.asked == ["echo", "late"]


async def test_a_layer_may_change_the_outcome() -> None:
    """A layer can change the output or raise an error."""

    class Shouting(ILayer):
        def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
            async def loud(call: Call) -> Any:
                return str(await call_next(call)).upper()

            return loud

    class Breaking(ILayer):
        def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
            async def broken(call: Call) -> Any:
                raise RuntimeError("swordfish")

            return broken

    async with connect(container_of(Echo(), layers=[Shouting()])) as client:
        assert (await client.call("echo", {"text": "x"})).text == "X"
    async with connect(container_of(Echo(), layers=[Breaking()])) as client:
        outcome = await client.call("echo", {"text": "x"})
        assert outcome.is_error
        assert "swordfish" not in outcome.text


async def test_a_layer_that_cannot_wrap_is_found_at_the_start() -> None:
    """The server does not start if a layer fails to wrap a tool, and the error names the tool."""

    class Failing(ILayer):
        def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
            raise ValueError("no way")

    with pytest.raises(Exception, match=r"'echo'.*no way"):
        await ServerHost(container_of(Echo(), layers=[Failing()])).start()


async def test_calls_beyond_the_limit_are_rejected_at_once() -> None:
    """A call beyond the limit is rejected with a retry hint, and other tools are not affected."""
    probe = Probe()
    probe.max_concurrency = 1
    async with ServerHost(container_of(probe, Echo())) as host:
        peer = Peer(host)
        peer.call("probe", id=1)
        await probe.started.wait()
        refused = (await peer.reply(peer.call("probe", id=2)))["result"]
        assert refused["isError"] is True
        assert refused["_meta"]["axolotl/retryAfterMs"] == 1000
        assert refused["content"][0]["text"] == "probe is busy: it runs at most 1 at once; try again"
        assert "isError" not in (await peer.reply(peer.call("echo", id=3)))["result"]
        probe.release.set()
        assert (await peer.receive())["id"] == 1
        assert "isError" not in (await peer.reply(peer.call("probe", id=4)))["result"]
        await peer.close()


@pytest.mark.parametrize("ending", ["failure", "cancellation", "deadline", "refusal below"])
async def test_a_slot_is_released(ending: str) -> None:
    """The slot is released however the call ends."""
    limit, invoked = 1, 0

    async def work(call: Call) -> Any:
        nonlocal invoked
        invoked += 1
        if ending == "failure":
            raise RuntimeError
        if ending == "refusal below":
            raise Overloaded("no", 1)
        raise asyncio.CancelledError if ending == "cancellation" else TimeoutError

    spec = spec_of(Echo(), max_concurrency=limit)
    invoke = ConcurrencyLayer().wrap(spec, work)
    task = asyncio.current_task()
    assert task is not None
    one = Call(spec=spec, raw=b"{}", task=task)
    for _ in range(3):
        with pytest.raises((RuntimeError, Overloaded, asyncio.CancelledError, TimeoutError)):
            await invoke(one)
    assert invoked == 3


async def test_a_malformed_call_takes_no_slot() -> None:
    """Invalid arguments are reported even if all slots are taken."""
    probe = Probe()
    probe.max_concurrency = 1
    async with ServerHost(container_of(probe)) as host:
        peer = Peer(host)
        peer.call("probe", id=1)
        await probe.started.wait()
        refused = (await peer.reply(peer.call("probe", {"x": 1}, id=2)))["result"]
        assert refused["content"][0]["text"].startswith("Invalid arguments: ")
        probe.release.set()
        await peer.close()


async def test_tools_share_no_slots() -> None:
    """Each tool has its own limit."""
    first, second = Probe(), Probe()
    second.name = "other"
    first.max_concurrency = second.max_concurrency = 1
    async with ServerHost(container_of(first, second)) as host:
        peer = Peer(host)
        peer.call("probe", id=1)
        peer.call("other", id=2)
        await first.started.wait()
        await second.started.wait()
        first.release.set()
        second.release.set()
        replies = await peer.close()
        assert not any(reply["result"].get("isError") for reply in replies)


async def test_the_whole_server_has_a_limit() -> None:
    """A call beyond the limit of the server is rejected with the same message for all."""
    probe = Probe()
    async with ServerHost(container_of(probe, Echo()), flags={"limits": {"max_inflight": 1}}) as host:
        peer = Peer(host)
        peer.call("probe", id=1)
        await probe.started.wait()
        refused = (await peer.reply(peer.call("echo", id=2)))["result"]
        assert (refused["isError"], refused["_meta"]["axolotl/retryAfterMs"]) == (True, 1000)
        probe.release.set()
        await peer.close()


async def test_operators_beat_tools() -> None:
    """Settings for a tool, in any case of its name, override its attributes."""
    probe = Probe()
    probe.timeout_seconds = 1000.0
    settings = {"tools": {"PROBE": {"timeout_seconds": 0.02}}}
    async with connect(container_of(probe), settings=settings) as client:
        outcome = await client.call("probe")
        assert outcome.text == "Tool probe did not finish within 0.02 seconds"


async def test_operators_limit_concurrency() -> None:
    """Settings can limit the concurrency of a tool."""
    probe = Probe()
    async with ServerHost(container_of(probe), flags={"tools": {"probe": {"max_concurrency": 1}}}) as host:
        peer = Peer(host)
        peer.call("probe", id=1)
        await probe.started.wait()
        assert "busy" in (await peer.reply(peer.call("probe", id=2)))["result"]["content"][0]["text"]
        probe.release.set()
        await peer.close()


async def test_operators_switch_tools_off() -> None:
    """A disabled tool is neither listed nor found."""
    settings = {"tools": {"echo": {"enabled": False}}}
    async with connect(container_of(Echo(), Square()), settings=settings) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["square"]
        with pytest.raises(Exception, match="Tool not found: echo"):
            await client.call("echo")


async def test_operators_let_arguments_be_coerced() -> None:
    """Settings can enable coercion for all tools."""
    for settings, lenient in (
        ({}, False),
        ({"tools": {"coerce_arguments": True}}, True),
    ):
        async with connect(container_of(Square()), settings=settings) as client:
            assert (await client.call("square", {"number": "3"})).is_error is not lenient


async def test_a_tool_without_a_deadline_has_the_servers() -> None:
    """A tool without a timeout has the server's default."""
    async with connect(container_of(Probe()), settings={"limits": {"timeout_seconds": 0.02}}) as client:
        assert (await client.call("probe")).text == "Tool probe did not finish within 0.02 seconds"


async def test_the_wire_sets_no_limits() -> None:
    """A client cannot change timeouts and limits."""
    async with connect(container_of(Probe()), settings={"limits": {"timeout_seconds": 0.02}}) as client:
        params = {"name": "probe", "arguments": {}, "timeout_seconds": 100, "sandbox": {"timeout": 100}}
        result = await client.request("tools/call", params)
        assert result["_meta"]["axolotl/reason"] == "timeout"
