"""The container of an Axolotl server with slow tools; the blocking one has a separate thread pool."""

from dependency_injector import containers, providers

from axolotl_core import tool
from benchmarks.servers.slow_functions import DEADLINE_SECONDS, block, quick, swallow


class Container(containers.DeclarativeContainer):
    tools = providers.List(
        providers.Object(tool(timeout_seconds=DEADLINE_SECONDS, pool="slow")(block)),
        providers.Object(tool(timeout_seconds=DEADLINE_SECONDS)(swallow)),
        providers.Object(tool(timeout_seconds=DEADLINE_SECONDS)(quick)),
    )
