import logging
import time
from typing import Any

from dependency_injector import containers, providers
from greeter import Greet

from axolotl_core import ToolAnnotations, prompt, tool
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, Invoke

log = logging.getLogger("acme.timing")


# region layer
def timing(spec: FeatureSpec, call_next: Invoke) -> Invoke:
    """Log how long calls take, except calls of read-only tools."""
    if isinstance(spec, ToolSpec) and spec.tool.annotations.read_only:
        return call_next

    async def timed(call: Call) -> Any:
        begin = time.perf_counter()
        try:
            return await call_next(call)
        finally:
            log.info("%s %s took %.1f ms", spec.kind, spec.name, 1000 * (time.perf_counter() - begin))

    return timed


# endregion layer


@tool(annotations=ToolAnnotations(read_only=True))
async def shout(text: str) -> str:
    """Return the text in capital letters."""
    return text.upper()


@prompt
async def ask_for_poem(topic: str) -> str:
    """Ask for a poem."""
    return f"Write a poem about {topic}."


# region container
class Container(containers.DeclarativeContainer):
    layers = providers.List(providers.Object(timing))
    tools = providers.List(providers.Singleton(Greet), providers.Object(shout))
    prompts = providers.List(providers.Object(ask_for_poem))


# endregion container
