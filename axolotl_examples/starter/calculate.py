"""A tool with typed input and output, and errors that a model can act on."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from axolotl_core import ToolAnnotations, ToolError, tool

Operation: TypeAlias = Literal["add", "subtract", "multiply", "divide", "power"]

_OPERATIONS: Final[Mapping[Operation, Callable[[float, float], float | complex]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
}


class Outcome(BaseModel):
    """The result of a calculation."""

    result: float = Field(description="The result of the calculation.")


@tool(title="Calculate", annotations=ToolAnnotations(read_only=True, idempotent=True, open_world=False))
async def calculate(
    left: Annotated[float, Field(description="The first number.", examples=[6])],
    operation: Annotated[Operation, Field(description="The operation to perform.", examples=["multiply"])],
    right: Annotated[float, Field(description="The second number.", examples=[7])],
) -> Outcome:
    """Add, subtract, multiply or divide two numbers, or raise one to the power of the other."""
    try:
        result = _OPERATIONS[operation](left, right)
    except ZeroDivisionError:
        raise ToolError("Division by zero has no result; choose another number for `right`.") from None
    except OverflowError:
        raise ToolError("The result is too large.") from None
    if isinstance(result, complex) or not math.isfinite(result):
        raise ToolError("The result is not a finite real number.")
    return Outcome(result=result)
