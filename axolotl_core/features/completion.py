"""Functions as prompts and resource templates, whose arguments other functions complete."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar, cast

from axolotl_core.arguments import ParseArguments, model_parser, property_of
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.feature import IFeature
from axolotl_core.features.function_feature import FunctionFeature, parameters_schema
from axolotl_core.schema import JsonSchema, admits_extra, schema_of

MAX_VALUES: Final = 100
"""How many suggestions the protocol lets one answer hold."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Suggestions, the best first; `total` says how many there are in all, where that is known."""

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None


CompletionOutput: TypeAlias = Completion | Sequence[str]
Completer: TypeAlias = Callable[..., CompletionOutput | Awaitable[CompletionOutput]]
"""Takes what was typed so far and, if it names a parameter `known`, the arguments that are filled in already."""


def completion_of(output: CompletionOutput) -> Completion:
    """Cut an answer to what the protocol allows, and say that there was more.

    Raises:
        TypeError: if it is one text, which would be taken for a list of letters.
    """
    completion = output if isinstance(output, Completion) else Completion(output)
    if isinstance(completion.values, str):
        raise TypeError("a completer gives a list of texts, not one text")
    values = tuple(completion.values)
    if len(values) <= MAX_VALUES:
        return replace(completion, values=values)
    total = len(values) if completion.total is None else completion.total
    return Completion(values[:MAX_VALUES], total, has_more=True)


def choices_in(schema: JsonSchema, value: str) -> Sequence[str]:
    """Suggest from what a schema admits: the members of an enumeration, or true and false; for a list, its items."""
    wanted = value.casefold()
    choices = [choice for choice in _choices(schema) if wanted in choice.casefold()]
    return sorted(choices, key=lambda choice: not choice.casefold().startswith(wanted))


async def run_completer(completer: Completer, value: str, known: Mapping[str, str]) -> CompletionOutput:
    """Call a completer with as much as it wants to know."""
    takes_known = "known" in inspect.signature(completer).parameters
    output = completer(value, known=known) if takes_known else completer(value)
    return await output if inspect.isawaitable(output) else output


def check_completer(completer: Completer, argument: str, known: Sequence[str]) -> None:
    """Look at what completes an argument.

    Raises:
        ConfigurationError: if there is no such argument.
    """
    if argument not in known:
        has = ", ".join(known) or "none"
        name = getattr(completer, "__name__", repr(completer))
        raise ConfigurationError(f"{name} completes {argument!r}, which is no argument; there are: {has}")


def bound_to(instance: object, completer: Completer) -> Completer:
    """Bind a completer that is a method to the object of its prompt or resource."""
    takes_self = next(iter(inspect.signature(completer).parameters), None) == "self"
    return cast(Completer, completer.__get__(instance)) if takes_self else completer


def _choices(schema: JsonSchema) -> list[str]:
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return [choice for choice in choices if isinstance(choice, str)]
    if schema.get("type") == "boolean":
        return ["true", "false"]
    if schema.get("type") == "array":
        return _choices(schema.get("items", {}))
    alternatives = schema.get("anyOf") or schema.get("oneOf") or ()
    return [choice for alternative in alternatives for choice in _choices(alternative)]


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


P = ParamSpec("P")
R = TypeVar("R")
CompleterT = TypeVar("CompleterT", bound=Completer)


class CompletableFunction(FunctionFeature[P, R], ICompletable):
    """A function whose arguments have completers."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any], *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.completers: dict[str, Completer] = {}

    def completes(self, argument: str) -> Callable[[CompleterT], CompleterT]:
        """Let the decorated function suggest values for an argument; it takes what was typed so far.

        Raises:
            ConfigurationError: if there is no such argument.
        """

        def decorate(completer: CompleterT) -> CompleterT:
            check_completer(completer, argument, [one.public_name for one in self.signature.parameters])
            self.completers[argument] = completer
            return completer

        return decorate

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        """Ask the completer of an argument; one that has none completes itself if it can."""
        completer = self.completers.get(argument)
        if completer is None:
            return await super().complete(argument, value, known)
        return await run_completer(completer, value, known)

    @property
    def arguments_schema(self) -> JsonSchema:
        """The schema of the function's parameters."""
        return parameters_schema(self.signature.parameters)

    def completers_for(self, instance: object) -> dict[str, Completer]:
        """Give the completers bound to an object, for a method of it."""
        return {argument: bound_to(instance, completer) for argument, completer in self.completers.items()}

    @property
    def completes_without_waiting(self) -> bool:
        """Whether a completer is a plain function, which may block and therefore runs in a worker thread."""
        return any(not inspect.iscoroutinefunction(completer) for completer in self.completers.values())
