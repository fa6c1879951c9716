"""A small project with tests of its own, which run in a pytest session inside of the test."""

import sys
import textwrap
from collections.abc import Callable
from typing import TypeAlias

import pytest

SESSION = ("-p", "no:axolotl", "-p", "axolotl_testing.plugin", "-p", "no:cacheprovider", "-p", "no:xdist")
"""Options of the inner session: the plugin of this checkout, whether or not it is installed."""

CONTAINER = '''
    """A shop."""

    import asyncio
    import threading
    from collections.abc import Iterator
    from pathlib import Path

    from dependency_injector import containers, providers

    from axolotl_core import Context, ToolError, tool


    class Orders:
        def __init__(self, states: dict[int, str]) -> None:
            self.states = states


    def open_orders() -> Iterator[Orders]:
        Path("opened").touch()
        yield Orders({7: "sent"})


    class Shop:
        def __init__(self, orders: Orders, currency: str) -> None:
            self._orders = orders
            self._currency = currency

        @tool
        async def track_order(self, number: int) -> dict[str, str]:
            """Track an order."""
            if number not in self._orders.states:
                raise ToolError(f"There is no order {number}")
            return {"state": self._orders.states[number], "currency": self._currency}

        @tool
        async def restock(self, item: str) -> str:
            """Order more of an item."""
            return f"ordered {item}"


    class Prices(containers.DeclarativeContainer):
        currency = providers.Object("EUR")


    def features(shop: Shop, *names: str) -> list[object]:
        return [getattr(shop, name) for name in names]


    class Container(containers.DeclarativeContainer):
        prices = providers.Container(Prices)
        orders = providers.Resource(open_orders)
        shop = providers.Singleton(Shop, orders, prices.currency)
        tools = providers.Aggregate(
            read=providers.Callable(features, shop, "track_order"),
            write=providers.Callable(features, shop, "restock"),
        )
'''

SETTINGS = """
    target = "shop_container:Container"

    [authorization]
    default = "deny"

    [[authorization.rules]]
    name = "clerks read"
    effect = "allow"
    who = { roles = ["clerk"] }
    what = { toolsets = ["read"] }

    [[authorization.rules]]
    name = "managers do everything"
    effect = "allow"
    who = { roles = ["manager"] }

    [profile.test.server]
    name = "tested"
"""

RunTests: TypeAlias = Callable[..., pytest.RunResult]


@pytest.fixture
def run_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> RunTests:
    """Write the project, and run tests in it, in this process.

    After its session, pytester unloads all modules that it has imported. A library that is imported twice has two
    classes for each of its exceptions, so only the modules of the project are unloaded.
    """

    def unload_project(_: object) -> None:
        for name, module in tuple(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(pytester.path)):
                del sys.modules[name]

    monkeypatch.setattr("_pytest.pytester.SysModulesSnapshot.restore", unload_project)
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    pytester.makefile(".toml", axolotl=textwrap.dedent(SETTINGS))
    pytester.makepyfile(shop_container=textwrap.dedent(CONTAINER))

    def run(code: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_shop=textwrap.dedent(code))
        return pytester.runpytest_inprocess(*SESSION, *options)

    return run
