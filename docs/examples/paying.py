from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.policies.tool_rules import Idempotency

PAID: list[int] = []


# region key
@tool(idempotency=Idempotency(key="payment_id", window_seconds=3600))
async def pay(payment_id: str, euros: int) -> str:
    """Pay; each payment_id is paid once."""
    PAID.append(euros)
    return f"paid {euros} €"


# endregion key


# region digest
@tool(idempotency=Idempotency(window_seconds=60))
async def order(article: str, pieces: int) -> dict[str, int]:
    """Order an article; an identical order within a minute is not repeated."""
    PAID.append(pieces)
    return {"ordered": pieces}


# endregion digest


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object([pay, order]))
