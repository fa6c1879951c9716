"""Time how long Axolotl takes to make tools of many typed functions and to compile them."""

import asyncio

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_server import ServerHost
from benchmarks.registration.stopwatch import timed
from benchmarks.servers.functions import Function


def register(functions: list[Function]) -> None:
    """Make a server that is ready to serve the functions."""
    container = containers.DynamicContainer()
    container.tools = providers.List(*(providers.Object(tool(function)) for function in functions))
    asyncio.run(ServerHost(container).start())


if __name__ == "__main__":
    timed(register)
