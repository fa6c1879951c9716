import asyncio
import logging
from typing import Any

from dependency_injector import containers, providers
from greeter import Greet

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_server import connect

log = logging.getLogger("acme.calls")


# region layer
class TraceLayer(ILayer):
    """Logs every call with its trace ID."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def traced(call: Call) -> Any:
            trace = call.trace
            log.info("%s %s, trace %s", spec.kind, spec.name, trace.trace_id if trace else "none")
            return await call_next(call)

        return traced


# endregion layer


class Container(containers.DeclarativeContainer):
    layers = providers.List(providers.Singleton(TraceLayer))
    tools = providers.List(providers.Singleton(Greet))


async def main() -> None:
    meta = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    async with connect(Container()) as client:
        for params in ({"_meta": meta}, {}):
            await client.request("tools/call", {"name": "greet", "arguments": {"name": "Ada"}, **params})


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(message)s")
    asyncio.run(main())
