"""A function's signature as the description of a tool."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from axolotl_core.context import ToolContext
from axolotl_core.errors import ConfigurationError
from axolotl_core.parameters import Parameter

__all__ = ["Signature"]

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives, as a tool."""

    description: str
    parameters: tuple[Parameter, ...]
    context_parameters: tuple[str, ...]
    returned: Any
    """The annotation of what the function gives; Any where there is none."""

    @classmethod
    def of(cls, function: Callable[..., Any], *, skip_first: bool) -> "Signature":
        """Read a function; `skip_first` leaves out `self`.

        Raises:
            ConfigurationError: if a parameter has no annotation, or takes any number of values.
        """
        hints = get_type_hints(function, include_extras=True)
        found = list(inspect.signature(function).parameters.values())[skip_first:]
        for parameter in found:
            _check(function, parameter, hints)
        context = tuple(one.name for one in found if _is_context(hints[one.name]))
        description, described = _documentation(inspect.cleandoc(function.__doc__ or ""))
        parameters = tuple(
            Parameter.of(one.name, hints[one.name], _default(one), described.get(one.name))
            for one in found
            if one.name not in context
        )
        return cls(description, parameters, context, hints.get("return", Any))


def _documentation(docstring: str) -> tuple[str, Mapping[str, str]]:
    """Split a docstring into the description of the function and those of its parameters."""
    if "\n" not in docstring:
        return docstring, {}
    import docstring_parser  # containers without long docstrings start faster without it

    try:
        parsed = docstring_parser.parse(docstring)
    except docstring_parser.ParseError:
        return docstring, {}
    described = {parameter.arg_name: parameter.description or "" for parameter in parsed.params}
    return (parsed.description or "").strip(), described


def _check(function: Callable[..., Any], parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    where = f"{function.__qualname__}({parameter.name})"
    if parameter.kind in _VARIADIC or parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigurationError(f"{where}: a tool's parameters must be passable by name, one by one")
    if parameter.name not in hints:
        raise ConfigurationError(f"{where}: annotate the parameter, so that its schema is known")


def _is_context(hint: Any) -> bool:
    return ToolContext in (hint, *get_args(hint))


def _default(parameter: inspect.Parameter) -> Any:
    return ... if parameter.default is parameter.empty else parameter.default
