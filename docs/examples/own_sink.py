import asyncio
from collections.abc import Awaitable

from dependency_injector import containers, providers

from axolotl_core import Forbidden, tool
from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server import connect


# region sink
class Alerts:
    """A service that alerts the person on duty."""

    async def send(self, text: str) -> None:
        print(text)


class DeniedCalls(IAuditSink):
    """Sends an alert for every denied call."""

    def __init__(self, alerts: Alerts) -> None:
        self._alerts = alerts

    def write(self, record: AuditRecord) -> Awaitable[None] | None:
        if record.outcome != "denied":
            return None
        return self._alerts.send(f"{record.subject} was denied {record.name}: {record.reason}")


# endregion sink


@tool
async def open_vault() -> None:
    """Open the vault."""
    raise Forbidden("Not at night", meta={"reason": "night"})


# region container
class Container(containers.DeclarativeContainer):
    alerts = providers.Singleton(Alerts)
    audit_sinks = providers.List(providers.Singleton(DeniedCalls, alerts))
    tools = providers.List(providers.Object(open_vault))


# endregion container


async def main() -> None:
    async with connect(Container()) as client:
        await client.call("open_vault")


if __name__ == "__main__":
    asyncio.run(main())
