from bookshop.stock import IStock

from axolotl_testing import Policy

TEXTS = {"recommend", "bookshop://terms"}


def test_who_may_do_what(axolotl_policy: Policy, stock: IStock) -> None:
    policy = axolotl_policy(overrides={"stock": stock})
    policy.expect(calls={"find_books", *TEXTS})
    policy.expect(roles=["customer"], calls={"find_books", "order_book", *TEXTS})
