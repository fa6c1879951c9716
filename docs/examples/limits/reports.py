"""Tools with different costs."""

from dependency_injector import containers, providers

from axolotl_core import tool


@tool(name="report.month", cost=20, max_concurrency=2, queue_limit=4, queue_timeout_seconds=5)
async def report_month(month: str) -> str:
    """Write a monthly report. Two calls run at once; four more wait for up to five seconds."""
    return f"report for {month}"


@tool(name="report.day")
async def report_day(day: str) -> str:
    """Write a daily report."""
    return f"report for {day}"


@tool(cost=0)
async def status() -> str:
    """Report the status. Calls are free: they use no quota."""
    return "ok"


@tool
async def pay(invoice: int) -> str:
    """Pay an invoice."""
    return f"invoice {invoice} is paid"


class Billing(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(pay))


class Container(containers.DeclarativeContainer):
    billing = providers.Container(Billing)
    tools = providers.List(providers.Object([report_month, report_day, status]))
