"""Many typed tools for an Axolotl server."""

from dependency_injector import providers

from axolotl_core import tool
from benchmarks.servers.axolotl_add import Add
from benchmarks.servers.functions import MANY, typed_functions


def many_tools(count: str) -> providers.List:
    """Provide tools with different names, the last of which is `add`."""
    others = (providers.Object(tool(function)) for function in typed_functions(MANY[count] - 1))
    return providers.List(*others, providers.Singleton(Add))
