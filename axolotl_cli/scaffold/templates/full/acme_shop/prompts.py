"""A prompt: a message that a person picks and fills in."""

from typing import Annotated

from axolotl_core import prompt
from pydantic import Field


@prompt(title="Apologize to a customer")
async def apology(
    number: Annotated[int, Field(description="The number of the order.")],
    reason: Annotated[str, Field(description="What went wrong.")],
) -> str:
    """Write an apology to a customer."""
    return f"Track order {number}, then write a short and friendly apology to the customer. What went wrong: {reason}"
