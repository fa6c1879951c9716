from dependency_injector import containers, providers

from axolotl_core import scan
from warehouse.stock import Stock


class Container(containers.DeclarativeContainer):
    stock = providers.Singleton(Stock, {"bolt": 12})
    tools = providers.Callable(scan, "warehouse.tools", stock=stock)
