import asyncio
from collections.abc import Awaitable

from dependency_injector import containers, providers

from axolotl_core import AuditRecord, Forbidden, IAuditSink, tool
from axolotl_server import connect


# region sink
class Watch:
    """Whoever is on duty."""

    async def tell(self, text: str) -> None:
        print(text)


class DeniedCalls(IAuditSink):
    """Tells the watch of every call that was denied."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def write(self, record: AuditRecord) -> Awaitable[None] | None:
        if record.outcome != "denied":
            return None
        return self._watch.tell(f"{record.subject} may not call {record.name}: {record.reason}")


# endregion sink


@tool
async def open_vault() -> None:
    """Open the vault."""
    raise Forbidden("Not at night", meta={"reason": "night"})


# region container
class Container(containers.DeclarativeContainer):
    watch = providers.Singleton(Watch)
    audit_sinks = providers.List(providers.Singleton(DeniedCalls, watch))
    tools = providers.List(providers.Object(open_vault))


# endregion container


async def main() -> None:
    async with connect(Container()) as client:
        await client.call("open_vault")


if __name__ == "__main__":
    asyncio.run(main())
