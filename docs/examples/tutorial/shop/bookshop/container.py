from dependency_injector import containers, providers

from bookshop.stock import open_stock
from bookshop.texts import recommend, terms
from bookshop.tools import FindBooks, OrderBook


class Container(containers.DeclarativeContainer):
    stock = providers.Resource(open_stock, "bookshop.db")
    tools = providers.Aggregate(
        read=providers.List(providers.Singleton(FindBooks, stock)),
        write=providers.List(providers.Singleton(OrderBook, stock)),
    )
    prompts = providers.List(providers.Object(recommend))
    resources = providers.List(providers.Object(terms))
