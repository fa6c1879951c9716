"""`Completion`, `ICompletable`, and completers for functions."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec
from pydantic import BaseModel

from axolotl_core.arguments import ParseArguments, model_parser, property_of
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.feature import IFeature
from axolotl_core.features.function_feature import FunctionFeature, parameters_schema
from axolotl_core.schema import JsonSchema, P, R, admits_extra, schema_of

MAX_VALUES: Final = 100
"""The maximum number of suggestions in one reply, by the protocol."""


class Completion(msgspec.Struct, frozen=True):
    """Suggestions, the best first. `total` is the number of all suggestions, if it is known."""

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None


CompletionOutput: TypeAlias = Completion | Sequence[str]
Completer: TypeAlias = Callable[..., CompletionOutput | Awaitable[CompletionOutput]]
"""Takes the text typed so far and, if it has a parameter `known`, the arguments that are already filled in."""


def completion_of(output: CompletionOutput) -> Completion:
    """Limit suggestions to the number that the protocol allows.

    Raises:
        TypeError: if they are a string instead of a list.
    """
    completion = output if isinstance(output, Completion) else Completion(output)
    if isinstance(completion.values, str):
        raise TypeError("a completer returns a list of strings, not a string")
    values = tuple(completion.values)
    if len(values) <= MAX_VALUES:
        return msgspec.structs.replace(completion, values=values)
    total = len(values) if completion.total is None else completion.total
    return Completion(values[:MAX_VALUES], total, has_more=True)


def choices_in(schema: JsonSchema, value: str) -> Sequence[str]:
    """Suggest the values that a schema allows: of an enumeration, a boolean, or the items of a list."""
    wanted = value.casefold()
    choices = [choice for choice in _choices(schema) if wanted in choice.casefold()]
    return sorted(choices, key=lambda choice: not choice.casefold().startswith(wanted))


async def run_completer(completer: Completer, value: str, known: Mapping[str, str]) -> CompletionOutput:
    """Call a completer, with `known` if it has that parameter."""
    takes_known = "known" in inspect.signature(completer).parameters
    output = completer(value, known=known) if takes_known else completer(value)
    return await output if inspect.isawaitable(output) else output


def bound_to(instance: object, completer: Completer) -> Completer:
    """Bind a completer that is a method to an object."""
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
    """Base of prompts and resource templates: features with named arguments that arrive as strings."""

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        """Suggest values for an argument. `value` is the text typed so far, `known` the other arguments.

        By default, arguments of type Literal, Enum or bool are completed from their type.
        """
        return choices_in(property_of(self.arguments_schema, argument), value)

    @property
    def arguments_schema(self) -> JsonSchema:
        """The JSON Schema of the arguments."""
        return schema_of(self.input_model, "validation")

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        forbid_extra = not admits_extra(self.arguments_schema)
        return model_parser(self.input_model, strict=not coerce, forbid_extra=forbid_extra)


def check_model(feature: ICompletable, what: str, base: str) -> None:
    """Check that the arguments of a feature are a model, unless it parses them itself.

    Raises:
        ConfigurationError: if they are not.
    """
    model, kind = getattr(feature, "input_model", None), type(feature)
    if kind.argument_parser is ICompletable.argument_parser and not (
        inspect.isclass(model) and issubclass(model, BaseModel)
    ):
        raise ConfigurationError(f"{kind.__name__} has no {what} model: write class {kind.__name__}({base})")


CompleterT = TypeVar("CompleterT", bound=Completer)


class CompletableFunction(FunctionFeature[P, R], ICompletable):
    """A function as a prompt or resource template, with completers for its arguments."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any], *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.completers: dict[str, Completer] = {}

    def completes(self, argument: str) -> Callable[[CompleterT], CompleterT]:
        """Use the decorated function to complete an argument. It takes the text typed so far.

        Raises:
            ConfigurationError: if the argument does not exist.
        """

        def decorate(completer: CompleterT) -> CompleterT:
            known = [one.public_name for one in self.signature.parameters]
            if argument not in known:
                name, known_names = getattr(completer, "__name__", repr(completer)), ", ".join(known) or "none"
                raise ConfigurationError(
                    f"{name} completes {argument!r}, which is not an argument; arguments: {known_names}"
                )
            self.completers[argument] = completer
            return completer

        return decorate

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        completer = self.completers.get(argument)
        if completer is None:
            return await super().complete(argument, value, known)
        return await run_completer(completer, value, known)

    @property
    def arguments_schema(self) -> JsonSchema:
        return parameters_schema(self.signature.parameters)

    def bind(self, instance: object | None, owner: type) -> Any:
        method = super().bind(instance, owner)
        if method is not self:
            method.completers = {name: bound_to(instance, completer) for name, completer in self.completers.items()}
        return method

    @property
    def completes_without_waiting(self) -> bool:
        """Whether a completer is a plain function, which may block and so runs in a worker thread."""
        return any(not inspect.iscoroutinefunction(completer) for completer in self.completers.values())
