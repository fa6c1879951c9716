"""Features whose arguments arrive as text, and can be completed while somebody types them."""

from collections.abc import Mapping

from axolotl_core.arguments import ParseArguments, model_parser
from axolotl_core.completion import CompletionOutput, choices_in
from axolotl_core.feature import IFeature
from axolotl_core.schema import JsonSchema, admits_extra, schema_of
from axolotl_core.text_arguments import property_of

__all__ = ["ICompletable"]


class ICompletable(IFeature):
    """What prompts and templates of resources have in common: named arguments that are made of text."""

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        """Suggest values for an argument of which `value` was typed; `known` are the other arguments so far.

        Without an override the arguments that are a Literal, an Enum or a bool complete themselves.
        """
        return choices_in(property_of(self.arguments_schema, argument), value)

    @property
    def arguments_schema(self) -> JsonSchema:
        """The JSON Schema of the arguments."""
        return schema_of(self.input_model, "validation")

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        """Compile what turns texts into the model of the arguments."""
        forbid_extra = not admits_extra(self.arguments_schema)
        return model_parser(self.input_model, strict=not coerce, forbid_extra=forbid_extra)
