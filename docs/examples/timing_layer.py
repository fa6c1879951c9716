import logging
import time
from typing import Any

from dependency_injector import containers, providers
from greeter import Greet

from axolotl_core import ILayer, Invoke, ToolAnnotations, ToolCall, ToolSpec, tool

log = logging.getLogger("acme.timing")


# region layer
class TimingLayer(ILayer):
    """Logs how long calls take; tools that only read are left alone."""

    def wrap(self, spec: ToolSpec, call_next: Invoke) -> Invoke:
        if spec.tool.annotations.read_only:
            return call_next

        async def timed(call: ToolCall) -> Any:
            begin = time.perf_counter()
            try:
                return await call_next(call)
            finally:
                log.info("%s took %.1f ms", spec.name, 1000 * (time.perf_counter() - begin))

        return timed


# endregion layer


@tool(annotations=ToolAnnotations(read_only=True))
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


# region container
class Container(containers.DeclarativeContainer):
    layers = providers.List(providers.Singleton(TimingLayer))
    tools = providers.List(providers.Singleton(Greet), providers.Object(shout))


# endregion container
