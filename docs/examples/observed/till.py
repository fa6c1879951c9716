import logging

from dependency_injector import containers, providers

from axolotl_core import tool

log = logging.getLogger("acme.till")


@tool
async def charge(customer: str, cents: int) -> str:
    """Charge a customer."""
    log.info("charging")
    if cents > 100_000:
        raise ConnectionError("the bank is down")
    return "charged"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(charge))
