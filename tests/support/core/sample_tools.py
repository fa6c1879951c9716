"""Tools and models that several tests of the core share."""

from typing import Any

import jsonschema_rs
import msgspec
from pydantic import BaseModel, ValidationError

from axolotl_core import Context, ITool, NoArguments
from axolotl_core.arguments import explain
from axolotl_core.registry import AnyTool


class Pair(BaseModel):
    """Two numbers."""

    a: int
    b: int


class Sum(BaseModel):
    """Their sum."""

    total: int


class Add(ITool[Pair, Sum]):
    """The simplest tool."""

    name = "add"
    description = "Adds two numbers"

    async def execute(self, arguments: Pair, context: Context) -> Sum:
        return Sum(total=arguments.a + arguments.b)


class Named(ITool[NoArguments, None]):
    """A tool with any name that does nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def execute(self, arguments: NoArguments, context: Context) -> None:
        return None


def read(tool: AnyTool, *, coerce: bool = False, **arguments: Any) -> Any:
    """Parse arguments like a call, from JSON."""
    return read_bytes(tool, msgspec.json.encode(arguments), coerce=coerce)


def read_bytes(tool: AnyTool, raw: bytes, *, coerce: bool = False) -> Any:
    """Parse raw arguments like a call, with pydantic's errors converted."""
    try:
        return tool.argument_parser(coerce=coerce)(raw)
    except ValidationError as error:
        raise explain(error, tool.input_model) from None


async def call(tool: AnyTool, context: Context | None = None, /, **arguments: Any) -> Any:
    """Call a tool with arguments that were encoded as JSON."""
    return await tool.execute(read(tool, **arguments), context or Context())


def fits(schema: Any, **arguments: Any) -> bool:
    """Check arguments against a published schema with an independent validator."""
    return jsonschema_rs.Draft202012Validator(schema).is_valid(arguments)
