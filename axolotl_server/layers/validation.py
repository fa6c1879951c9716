"""Arguments are validated once, from bytes, before anything waits."""

from collections.abc import Awaitable
from typing import Any

from pydantic import ValidationError

from axolotl_core.arguments import explain
from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec

__all__ = ["ValidationLayer"]


class ValidationLayer(ILayer):
    """Turns the raw arguments into the tool's input model, or refuses the call."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Compile the tool's parser."""
        parse = spec.feature.argument_parser(coerce=spec.limits.coerce_arguments)

        model = spec.feature.input_model

        def validated(call: ToolCall) -> Awaitable[Any]:
            try:
                call.arguments = parse(call.raw)
            except ValidationError as error:
                raise explain(error, model) from None
            return call_next(call)

        return validated
