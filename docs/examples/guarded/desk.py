from dependency_injector import containers, providers

from axolotl_core import ToolAnnotations, tool


@tool(annotations=ToolAnnotations(read_only=True))
async def find_invoice(number: int) -> str:
    """Find an invoice."""
    return f"invoice {number}"


@tool(annotations=ToolAnnotations(destructive=False))
async def add_note(number: int, text: str) -> str:
    """Add a note to an invoice."""
    return f"noted on {number}"


@tool(annotations=ToolAnnotations(destructive=True))
async def delete_invoice(number: int) -> str:
    """Delete an invoice."""
    return f"deleted {number}"


@tool(scopes=frozenset({"payments"}))
async def pay(number: int) -> str:
    """Pay an invoice."""
    return f"paid {number}"


class Desk(containers.DeclarativeContainer):
    tools = providers.List(*map(providers.Object, (find_invoice, add_note, delete_invoice, pay)))


class Container(containers.DeclarativeContainer):
    desk = providers.Container(Desk)
