"""Tools that are not equally dear."""

from dependency_injector import containers, providers

from axolotl_core import tool


@tool(name="report.month", cost=20, max_concurrency=2, queue_limit=4, queue_timeout_seconds=5)
async def report_month(month: str) -> str:
    """Write the report of a month: two at once, four more wait for up to five seconds."""
    return f"the report of {month}"


@tool(name="report.day")
async def report_day(day: str) -> str:
    """Write the report of a day."""
    return f"the report of {day}"


@tool(cost=0)
async def status() -> str:
    """Say that all is well; this counts for nobody's quota."""
    return "all is well"


@tool
async def pay(invoice: int) -> str:
    """Pay an invoice."""
    return f"invoice {invoice} is paid"


class Billing(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(pay))


class Container(containers.DeclarativeContainer):
    billing = providers.Container(Billing)
    tools = providers.List(providers.Object([report_month, report_day, status]))
