"""The tools, prompts and resources, in this process."""

from collections.abc import Sequence

from axolotl_testing import ClientFactory, Faults, as_principal, assert_refused, assert_result, assert_tool_error

from acme_shop.models import OrderState
from acme_shop.orders import IOrders

CLERK = as_principal("ann", roles=["clerk"])
MANAGER = as_principal("mia", roles=["manager"])


class FakeOrders(IOrders):
    """Orders in memory."""

    def __init__(self, *orders: OrderState) -> None:
        self._orders = {order.number: order for order in orders}

    async def find(self, number: int) -> OrderState | None:
        return self._orders.get(number)

    async def list(self) -> Sequence[OrderState]:
        return list(self._orders.values())

    async def add_stock(self, item: str, amount: int) -> int | None:
        return amount


async def test_track_order(axolotl_client: ClientFactory) -> None:
    """A clerk tracks an order; the repository is replaced."""
    orders = FakeOrders(OrderState(number=1, state="delivered", item="tea"))
    async with axolotl_client(overrides={"orders": orders}, principal=CLERK) as client:
        found = await client.call("track_order", {"number": 1})
        assert_result(found, {"number": 1, "state": "delivered", "item": "tea"})
        assert_tool_error(await client.call("track_order", {"number": 2}), "no order 2")


async def test_quote_shipping(axolotl_client: ClientFactory) -> None:
    """Every started kilogram counts."""
    async with axolotl_client(principal=CLERK) as client:
        assert_result(await client.call("quote_shipping", {"country": "DE", "grams": 1001}), {"cents": 780, "days": 2})


async def test_export_orders(axolotl_client: ClientFactory) -> None:
    """The result has a line for every order in that state."""
    async with axolotl_client(principal=CLERK) as client:
        assert_result(await client.call("export_orders", {"state": "sent"}), "7,sent,tea\n")


async def test_restock(axolotl_client: ClientFactory) -> None:
    """The stock grows, and the caller sees the progress."""
    seen: list[float] = []
    async with axolotl_client(principal=MANAGER) as client:
        arguments = {"item": "jam", "boxes": 2}
        outcome = await client.call("restock", arguments, on_progress=lambda params: seen.append(params["progress"]))
        assert_result(outcome, {"item": "jam", "in_stock": 27})
    assert seen[-1] == 2


async def test_restock_in_time(axolotl_client: ClientFactory, axolotl_faults: Faults) -> None:
    """A call that takes too long is stopped."""
    axolotl_faults.expire_deadline("restock")
    async with axolotl_client(principal=MANAGER) as client:
        await assert_refused(client.call("restock", {"item": "jam", "boxes": 1}), "timeout")


async def test_prompt_and_resource(axolotl_client: ClientFactory) -> None:
    """Clerks have the prompt and the resources."""
    async with axolotl_client(principal=CLERK) as client:
        text = (await client.get_prompt("apology", {"number": "7", "reason": "it rained"})).text
        assert "order 7" in text
        assert "7: sent" in (await client.read_resource("orders://all")).text
