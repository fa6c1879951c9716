"""The access rules of axolotl.toml, one line per role."""

from axolotl_testing import Policy

READ = {"track_order", "quote_shipping", "export_orders"}
PAGES = {"apology", "orders://all", "orders://{number}", "skill://returns/SKILL.md"}


def test_policy(axolotl_policy: Policy) -> None:
    axolotl_policy.expect(sees=set(), calls=set())
    axolotl_policy.expect(roles=["clerk"], sees=READ | PAGES, calls=READ | PAGES)
    axolotl_policy.expect(roles=["manager"], sees=READ | PAGES | {"restock"}, calls=READ | PAGES | {"restock"})
