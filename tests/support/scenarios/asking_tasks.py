"""Tools that run as tasks and ask."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, field_validator

from axolotl_core import Context, Declined, ITool, NoArguments, tool

ASKED = "elicitation/create"


class Amount(BaseModel):
    """A number."""

    amount: int = Field(ge=1, le=10)


class Fragile(BaseModel):
    """A form whose validator fails."""

    word: str

    @field_validator("word")
    @classmethod
    def look_up(cls, word: str) -> str:
        """Raise an unexpected error."""
        raise KeyError(word)


@tool(task_support="optional")
async def order(context: Context) -> str:
    """Ask one question."""
    return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"


@tool(task_support="optional")
async def order_both(context: Context) -> str:
    """Ask two questions at once."""
    first, second = await asyncio.gather(
        context.ask(Amount, "How many apples?", key="apples"), context.ask(Amount, "How many pears?", key="pears")
    )
    return f"{first.amount} and {second.amount}"


@tool(task_support="optional")
async def order_again(context: Context) -> str:
    """Ask the same questions repeatedly, with and without keys."""
    amounts = [(await context.ask(Amount, "How many?", key="amount")).amount for _ in range(3)]
    amounts += [(await context.ask(Amount, "How many?")).amount for _ in range(2)]
    await context.roots()
    return f"{amounts}"


@tool(task_support="optional")
async def order_or_not(context: Context) -> str:
    """Handle a declined question."""
    try:
        return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"
    except Declined as declined:
        return f"{declined.action}: {declined.message}"


@tool(task_support="optional")
async def break_form(context: Context) -> str:
    """Ask with a form that fails."""
    return (await context.ask(Fragile, "Which word?", key="word")).word


@tool(task_support="optional", timeout_seconds=0.05)
async def hurry(context: Context) -> str:
    """Ask with a short timeout."""
    return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"


@tool(timeout_seconds=0.05)
async def oversleep() -> None:
    """Exceed that timeout."""
    await asyncio.Event().wait()


class AskingFromThread(ITool[NoArguments, str]):
    """Asks from a thread."""

    name = "ask_from_thread"
    execution = "thread"
    task_support = "optional"

    def __init__(self) -> None:
        self.over = threading.Event()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        assert threading.current_thread() is not threading.main_thread()
        try:
            return await self._order(context)
        finally:
            self.over.set()

    async def _order(self, context: Context) -> str:
        return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"


ASKING_TOOLS = (
    order,
    order_both,
    order_again,
    order_or_not,
    break_form,
    hurry,
    oversleep,
    AskingFromThread(),
)


def accepted(amount: Any = 3) -> dict[str, Any]:
    return {"action": "accept", "content": {"amount": amount}}


def text_of(reply: Mapping[str, Any]) -> str:
    return str(reply["result"]["content"][0]["text"])
