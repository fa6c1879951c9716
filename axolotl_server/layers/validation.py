"""Arguments are validated once, from bytes, before anything waits."""

from collections.abc import Awaitable
from typing import Any

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import ToolSpec

__all__ = ["ValidationLayer"]


class ValidationLayer(ILayer):
    """Turns the raw arguments into the tool's input model, or refuses the call."""

    def wrap(self, spec: ToolSpec, call_next: Invoke) -> Invoke:
        """Compile the tool's parser."""
        parse = spec.tool.argument_parser(coerce=spec.limits.coerce_arguments)

        def validated(call: ToolCall) -> Awaitable[Any]:
            call.arguments = parse(call.raw)
            return call_next(call)

        return validated
