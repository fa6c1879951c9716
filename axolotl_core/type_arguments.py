"""What a class gives for the type parameters of a generic base, also through generic classes in between."""

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

__all__ = ["open_parameters", "type_arguments"]


def type_arguments(cls: Any, root: type) -> tuple[Any, ...] | None:
    """Find the type arguments that a class gives to `root`; None where it leaves one of them open."""
    for base in vars(cls).get("__orig_bases__", ()):
        found = _arguments_of(base, root)
        if found is not None and not any(open_parameters(argument) for argument in found):
            return found
    return None


def open_parameters(argument: Any) -> tuple[Any, ...]:
    """List the type parameters that are still to be filled in."""
    if isinstance(argument, TypeVar):
        return (argument,)
    return tuple(getattr(argument, "__parameters__", ()))


def _arguments_of(base: Any, root: type) -> tuple[Any, ...] | None:
    """Follow `Some[A, B]` up to `root[...]`, filling in A and B on the way."""
    origin: Any = get_origin(base)
    if not inspect.isclass(origin) or not issubclass(origin, root):
        return None
    if origin is root:
        return get_args(base)
    values = dict(zip(open_parameters(origin), get_args(base), strict=False))
    parents = (_arguments_of(parent, root) for parent in getattr(origin, "__orig_bases__", ()))
    found = next((arguments for arguments in parents if arguments is not None), None)
    return found and tuple(_filled(argument, values) for argument in found)


def _filled(argument: Any, values: Mapping[Any, Any]) -> Any:
    parameters = open_parameters(argument)
    if not parameters:
        return argument
    if isinstance(argument, TypeVar):
        return values.get(argument, argument)
    return argument[tuple(values.get(parameter, parameter) for parameter in parameters)]
