"""The time that Axolotl takes to create and compile many typed tools."""

import asyncio

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_server import ServerHost
from benchmarks.registration.stopwatch import timed
from benchmarks.servers.functions import Function


def register(functions: list[Function]) -> None:
    """Create a server that is ready to serve the functions."""
    container = containers.DynamicContainer()
    container.tools = providers.List(*(providers.Object(tool(function)) for function in functions))
    asyncio.run(ServerHost(container).start())


if __name__ == "__main__":
    timed(register)
