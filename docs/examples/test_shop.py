from dependency_injector import providers
from shop import Container, Orders

from axolotl_server import connect


async def test_a_tool_with_another_service() -> None:
    container = Container()
    container.orders.override(providers.Object(Orders({1: "delivered"})))
    async with connect(container) as client:
        answer = await client.call("track_order", {"number": 1})
        assert answer.text == "delivered (prices in EUR)"
