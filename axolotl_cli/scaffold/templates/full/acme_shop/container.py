"""What is served, and what it depends on."""

import os

from axolotl_core import resources_of, tools_of
from axolotl_core.resources.skills import skill_folder
from dependency_injector import containers, providers

from acme_shop.orders import open_orders
from acme_shop.prompts import apology
from acme_shop.resources import OrderPages
from acme_shop.tools.export_orders import ExportOrders
from acme_shop.tools.quotes import quote_shipping
from acme_shop.tools.restock import Warehouse
from acme_shop.tools.track_order import TrackOrder


class Container(containers.DeclarativeContainer):
    database = providers.Callable(os.environ.get, "ACME_SHOP_DATABASE", "orders.db")
    orders = providers.Resource(open_orders, database)

    # The tool sets `read` and `write`, which the access rules in axolotl.toml name.
    tools = providers.Aggregate(
        read=providers.List(
            providers.Singleton(TrackOrder, orders),
            providers.Object(quote_shipping),
            providers.Singleton(ExportOrders, orders),
        ),
        write=providers.List(providers.Callable(tools_of, providers.Singleton(Warehouse, orders))),
    )
    prompts = providers.List(providers.Object(apology))
    resources = providers.Callable(resources_of, providers.Singleton(OrderPages, orders))
    skills = providers.Object(skill_folder("acme_shop.skills"))
