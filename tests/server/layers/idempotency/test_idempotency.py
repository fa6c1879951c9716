"""Idempotency: a second call with the same key gets the result of the first."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, StringConstraints

from axolotl_core import ConfigurationError, Context, ITool, Principal, ToolError, tool
from axolotl_core.content import ToolResult
from axolotl_core.errors import Declined, InvalidParams, Overloaded, Refused, ToolTimeout
from axolotl_core.policies.tool_rules import Idempotency
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import connect
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.layers.idempotency.layer import IdempotencyLayer
from axolotl_server.stores.results import MemoryResultStore
from tests.support.counting_tools import Order, Pay, Till, forget, outage_log, text
from tests.support.peers.layer_calls import HandCall, spec_of
from tests.support.tools import Echo, container_of


async def test_a_result_is_stored() -> None:
    """Within the window, a second call gets the marked stored result without running; a later one runs."""
    till = Till()
    first = till.begin()
    await till.end("paid")
    assert await first.outcome() == "k paid"
    till.now += 59
    second = await till.begin().outcome()
    assert (text(second), second.meta) == ("k paid", {"axolotl/replayed": True})
    assert till.tool.runs["k"] == 1
    till.now += 2
    third = till.begin()
    await till.end("paid again")
    assert await third.outcome() == "k paid again"


async def test_keys_are_apart() -> None:
    """A different key, principal or tenant is a different call."""
    till = Till()
    callers = [Principal("ada"), Principal("bob"), Principal("ada", "acme"), Principal("ada", "zeta")]
    for number, principal in enumerate(callers):
        call = till.begin(principal=principal)
        await till.end(number)
        assert await call.outcome() == f"k {number}"
    other = till.begin("other")
    await till.end("x", "other")
    assert await other.outcome() == "other x"
    replays = [text(await till.begin(principal=principal).outcome()) for principal in callers]
    assert replays == ["k 0", "k 1", "k 2", "k 3"]


async def test_tools_are_apart() -> None:
    """The same key of another tool is a different call, even with a shared store."""
    refund = Pay()
    refund.name = "refund"
    first = Till()
    second = Till(refund, first.store)
    for till, said in ((first, "paid"), (second, "refunded")):
        call = till.begin()
        await till.end(said)
        assert await call.outcome() == f"k {said}"


async def test_the_same_key_with_other_arguments() -> None:
    """The same key with other arguments is rejected, during and after the first call."""
    till = Till()
    first = till.begin(amount=1)
    await till.running()
    running = await till.begin(amount=2).outcome()
    await till.end("paid")
    await first.outcome()
    stored = await till.begin(amount=2).outcome()
    for refused in (running, stored):
        assert isinstance(refused, Refused)
        assert refused.meta == {"axolotl/reason": "key_reused"}
    assert till.tool.runs["k"] == 1


async def test_a_tool_can_count_only_the_key() -> None:
    """A tool can declare that only the key counts."""
    pay = Pay()
    pay.idempotency = Idempotency(key="key", same_arguments=False)
    till = Till(pay)
    first = till.begin(amount=1)
    await till.end("paid")
    await first.outcome()
    assert text(await till.begin(amount=2).outcome()) == "k paid"


@pytest.mark.parametrize("key", [None, ""])
async def test_a_call_without_a_key(key: str | None) -> None:
    """A call without a key runs every time."""
    till = Till()
    for number in range(3):
        call = till.begin(key)
        await till.end(number, key)
        assert await call.outcome() == f"{key} {number}"


FAILURES = [ToolError("card refused", meta={"code": 7}), ToolResult(is_error=True)]


class Fails(Pay):
    """Raises a given exception."""

    def __init__(self, failure: Any, rule: Idempotency) -> None:
        super().__init__()
        self.idempotency = rule
        self._failure = failure

    async def execute(self, arguments: Order, context: Context) -> Any:
        self.runs[arguments.key] += 1
        if isinstance(self._failure, ToolError):
            raise self._failure
        return self._failure


@pytest.mark.parametrize("failure", FAILURES, ids=["raised", "given"])
async def test_failures_are_not_stored(failure: Any) -> None:
    """By default failures are not stored, and the next call runs."""
    till = Till(Fails(failure, Idempotency(key="key")))
    for _ in range(2):
        assert await till.begin().outcome() is failure
    assert till.tool.runs["k"] == 2


@pytest.mark.parametrize("failure", FAILURES, ids=["raised", "given"])
async def test_failures_are_stored_where_a_tool_asks_for_it(failure: Any) -> None:
    """If a tool stores failures, the next call gets the same failure without running."""
    till = Till(Fails(failure, Idempotency(key="key", store_failures=True)))
    assert await till.begin().outcome() is failure
    second = await till.begin().outcome()
    assert second.meta["axolotl/replayed"] is True
    if isinstance(failure, ToolError):
        assert (second.message, second.meta["code"]) == ("card refused", 7)
    else:
        assert second.is_error
    assert till.tool.runs["k"] == 1


@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), Overloaded("busy", 1), Declined("decline"), ToolTimeout("late"), InvalidParams("no")],
    ids=repr,
)
async def test_what_is_never_stored(error: Exception) -> None:
    """Bugs, rejections and other errors that mean that nothing was done are never stored."""
    pay = Pay()
    pay.idempotency = Idempotency(key="key", store_failures=True)
    till = Till(pay)
    for _ in range(2):
        call = till.begin()
        await till.end(error)
        assert await call.outcome() is error
    assert till.tool.runs["k"] == 2


class Shipment(BaseModel):
    id: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)] = Field(alias="shipmentId")
    batch: UUID | None = None
    day: date | None = None


class Ship(ITool[Shipment, int]):
    name = "ship"
    idempotency = Idempotency(key=("shipmentId", "batch"))

    def __init__(self) -> None:
        self.runs = 0

    async def execute(self, arguments: Shipment, context: Context) -> int:
        self.runs += 1
        return self.runs


async def results(target: Any, *calls: Mapping[str, Any]) -> list[Any]:
    async with connect(container_of(target)) as client:
        return [(await client.call(target.name, arguments)).structured for arguments in calls]


A, B = "0d1a7bd2-6c13-4bd7-8b02-0e5ac3a52b6a", "0D1A7BD2-6C13-4BD7-8B02-0E5AC3A52B6A"


async def test_different_spellings_of_a_value_give_the_same_key() -> None:
    """Keys are built from parsed values, so that different spellings give the same key."""
    ids = [{"shipmentId": " X1", "batch": A}, {"batch": B, "shipmentId": "x1"}, {"shipmentId": "x2", "batch": A}]
    assert await results(Ship(), *ids) == [1, 1, 2]


async def test_a_key_of_several_arguments_needs_all() -> None:
    """If a part of the key is missing, there is no key."""
    assert await results(Ship(), {"shipmentId": "x"}, {"shipmentId": "x"}) == [1, 2]


async def test_functions_and_raw_schemas() -> None:
    """Tools of every kind support idempotency, also with argument aliases."""
    count = 0

    @tool(idempotency=Idempotency(key="orderId"))
    async def order(order_id: Annotated[int, Field(alias="orderId")]) -> dict[str, int]:
        nonlocal count
        count += 1
        return {"count": count}

    assert await results(order, {"orderId": 5}, {"orderId": 5}, {"orderId": 6}) == [
        {"count": 1},
        {"count": 1},
        {"count": 2},
    ]
    seen: list[int] = []

    def handle(arguments: dict[str, Any]) -> dict[str, int]:
        seen.append(arguments["id"])
        return {"n": len(seen)}

    raw = SchemaTool("raw", {"properties": {"id": {"type": "integer"}}}, handle)
    raw.idempotency = Idempotency(key="id")
    assert await results(raw, {"id": 5}, {"id": 5}, {"id": 6}) == [{"n": 1}, {"n": 1}, {"n": 2}]


async def test_the_digest_of_the_arguments() -> None:
    """Without a key, equal arguments are the same call, regardless of order and whitespace."""

    class Digested(Ship):
        idempotency = Idempotency()

    target = Digested()
    spec = spec_of(target)
    invoke = IdempotencyLayer(MemoryResultStore(100, 10_000), forget, outage_log(), DeadlineTable()).wrap(
        spec, lambda call: target.execute(call.arguments, call)
    )
    calls = [
        b'{"shipmentId":"x","day":"2026-01-31"}',
        b' {"day" : "2026-01-31", "shipmentId":"x"}',
        b'{"shipmentId":"x"}',
    ]
    for raw, runs in zip(calls, (1, 1, 2), strict=True):
        call = HandCall(invoke, spec, {"shipmentId": "x"})
        call.call.raw = raw
        await call.outcome()
        assert target.runs == runs


def test_a_key_must_be_an_argument() -> None:
    """The server does not start if the key is not an argument."""
    pay = Pay()
    pay.idempotency = Idempotency(key="order_id")
    with pytest.raises(ConfigurationError, match=r"'pay'.*'order_id'"):
        Till(pay)


async def test_a_result_that_is_too_large() -> None:
    """If a result is too large to be stored, it is remembered that the call ran."""
    till = Till(max_record_bytes=1000)
    call = till.begin()
    await till.end("x" * 2000)
    assert len(await call.outcome()) == 2002
    again = await till.begin().outcome()
    assert isinstance(again, Refused)
    assert again.meta == {"axolotl/reason": "replay_too_large", "axolotl/replayed": True}
    assert till.tool.runs["k"] == 1


async def innermost(call: Any) -> Any:
    return None


def test_other_tools_are_not_wrapped() -> None:
    """A tool without idempotency is not wrapped."""
    layer = IdempotencyLayer(MemoryResultStore(1, 1), forget, outage_log(), DeadlineTable())
    assert layer.wrap(spec_of(Echo()), innermost) is innermost
