from typing import Any

from bookshop.stock import IStock

from axolotl_testing import ClientFactory, as_principal, assert_result, assert_tool_error

CUSTOMER = as_principal("ann", roles=["customer"])


# region find
async def test_find_books(axolotl_client: ClientFactory, stock: IStock) -> None:
    async with axolotl_client(overrides={"stock": stock}) as client:
        found = await client.call("find_books", {"words": "Newts"})
        assert_result(found, [{"isbn": "1", "title": "Newts", "copies": 1}])


# endregion find


# region order
def address(question: Any) -> dict[str, str]:
    return {"address": "1 Pond Lane"}


async def test_order_book(axolotl_client: ClientFactory, stock: IStock) -> None:
    async with axolotl_client(overrides={"stock": stock}, principal=CUSTOMER, answer=address) as client:
        ordered = await client.call("order_book", {"isbn": "1"})
        assert ordered.text == "Ordered. It will be sent to 1 Pond Lane."
        assert_tool_error(await client.call("order_book", {"isbn": "1"}), match="no copy of 1")


# endregion order
