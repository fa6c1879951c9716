"""A function's signature as a pydantic model, and back to a call of the function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from axolotl_core.context import ToolContext
from axolotl_core.errors import ConfigurationError

__all__ = ["Signature"]

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives, as a tool."""

    name: str
    parameters: Mapping[str, inspect.Parameter]
    hints: Mapping[str, Any]
    docstring: str
    context_parameters: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], *, skip_first: bool) -> "Signature":
        """Read a function; `skip_first` leaves out `self`.

        Raises:
            ConfigurationError: if a parameter has no annotation, or takes any number of values.
        """
        hints = get_type_hints(function, include_extras=True)
        parameters = dict(inspect.signature(function).parameters)
        if skip_first:
            parameters.pop(next(iter(parameters)))
        for parameter in parameters.values():
            _check(function, parameter, hints)
        context = tuple(name for name in parameters if ToolContext in (hints[name], *get_args(hints[name])))
        arguments = {name: parameter for name, parameter in parameters.items() if name not in context}
        return cls(function.__name__, arguments, hints, inspect.cleandoc(function.__doc__ or ""), context)

    @cached_property
    def model(self) -> type[BaseModel]:
        """The arguments as a model that refuses unknown ones."""
        fields: dict[str, Any] = {
            _field_name(name): self._field(name, parameter) for name, parameter in self.parameters.items()
        }
        return create_model(f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)

    @property
    def returned(self) -> Any:
        """The annotation of what the function gives; Any where there is none."""
        return self.hints.get("return", Any)

    @property
    def description(self) -> str:
        """The docstring without its section of parameters."""
        return self._documentation[0]

    def call(self, function: Callable[..., Any], arguments: BaseModel, context: ToolContext) -> Any:
        """Call the function with the model's values as they are: nested models stay models."""
        values = dict(zip(self.parameters, arguments.__dict__.values(), strict=True))
        for name in self.context_parameters:
            values[name] = context
        return function(**values)

    @cached_property
    def _documentation(self) -> tuple[str, Mapping[str, str]]:
        import docstring_parser  # containers without @tool start faster without it

        try:
            parsed = docstring_parser.parse(self.docstring)
        except docstring_parser.ParseError:
            return self.docstring, {}
        described = {parameter.arg_name: parameter.description or "" for parameter in parsed.params}
        return (parsed.description or "").strip(), described

    def _field(self, name: str, parameter: inspect.Parameter) -> tuple[Any, Any]:
        annotation = self.hints[name]
        default = ... if parameter.default is parameter.empty else parameter.default
        description = self._documentation[1].get(name)
        if description and not _has_description(annotation):
            annotation = Annotated[annotation, Field(description=description)]
        if _field_name(name) != name:
            annotation = Annotated[annotation, Field(alias=name)]
        return annotation, default


def _check(function: Callable[..., Any], parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    where = f"{function.__qualname__}({parameter.name})"
    if parameter.kind in _VARIADIC or parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigurationError(f"{where}: a tool's parameters must be passable by name, one by one")
    if parameter.name not in hints:
        raise ConfigurationError(f"{where}: annotate the parameter, so that its schema is known")


def _field_name(parameter: str) -> str:
    """Name a parameter's field: pydantic keeps some names to itself, those stay public as an alias."""
    reserved = parameter.startswith("_") or hasattr(BaseModel, parameter)
    return f"argument{parameter}" if reserved else parameter


def _has_description(annotation: Any) -> bool:
    if get_origin(annotation) is not Annotated:
        return False
    return any(isinstance(extra, FieldInfo) and extra.description for extra in get_args(annotation)[1:])
