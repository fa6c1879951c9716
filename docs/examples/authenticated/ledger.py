from dependency_injector import containers, providers

from axolotl_core import Context, tool


@tool
async def balance(context: Context) -> str:
    """Return the balance."""
    who = context.principal
    return f"12 EUR for {who.subject} of {who.tenant}, with the scopes {' '.join(sorted(who.scopes))}"


@tool(scopes=frozenset({"ledger:write"}))
async def book(amount: int) -> str:
    """Book an amount."""
    return f"booked {amount}"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(balance), providers.Object(book))
