"""A tool with typed input and output, and errors that a model can act on."""

import math
import operator
from collections.abc import Callable, Mapping
from enum import StrEnum

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations, ToolError


class Operation(StrEnum):
    """An arithmetic operation on two numbers."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    POWER = "power"


class Calculation(BaseModel):
    """Two numbers and an operation."""

    left: float = Field(description="The first number.", examples=[6])
    operation: Operation = Field(description="The operation to perform.", examples=["multiply"])
    right: float = Field(description="The second number.", examples=[7])


class Outcome(BaseModel):
    """The result of a calculation."""

    result: float = Field(description="The result of the calculation.")


class Calculate(ITool[Calculation, Outcome]):
    """Performs an arithmetic operation on two numbers."""

    name = "calculate"
    title = "Calculate"
    description = "Add, subtract, multiply or divide two numbers, or raise one to the power of the other."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    async def execute(self, arguments: Calculation, context: Context) -> Outcome:
        try:
            result = _OPERATIONS[arguments.operation](arguments.left, arguments.right)
        except ZeroDivisionError:
            raise ToolError("Division by zero has no result; choose another number for `right`.") from None
        except OverflowError:
            raise ToolError("The result is too large.") from None
        if isinstance(result, complex) or not math.isfinite(result):
            raise ToolError("The result is not a finite real number.")
        return Outcome(result=result)


_OPERATIONS: Mapping[Operation, Callable[[float, float], float | complex]] = {
    Operation.ADD: operator.add,
    Operation.SUBTRACT: operator.sub,
    Operation.MULTIPLY: operator.mul,
    Operation.DIVIDE: operator.truediv,
    Operation.POWER: operator.pow,
}
