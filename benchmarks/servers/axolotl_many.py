"""The container of an Axolotl server with 1,000 typed tools, the last of which is `add`."""

from dependency_injector import containers, providers

from axolotl_core import tool
from benchmarks.servers.axolotl_add import Add
from benchmarks.servers.functions import MANY, typed_functions


class Container(containers.DeclarativeContainer):
    tools = providers.List(
        *(providers.Object(tool(function)) for function in typed_functions(MANY - 1)), providers.Singleton(Add)
    )
