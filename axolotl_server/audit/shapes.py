"""Which parts of a value may be shown, found once from the types that it is read into.

What is shown is what a type is known to hold: a value of another form, and every name that no type knows, stays hidden.
"""

import collections
import inspect
from collections import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, Required, TypeAlias, Union, get_args, get_origin

from pydantic import JsonValue, Secret, SecretBytes, SecretStr

from axolotl_core.audit import Sensitive
from axolotl_server.audit.typed_fields import typed_fields

__all__ = ["Shape", "ShapeReader", "Shapes", "shown"]

_MASK: Final = "***"
_ARRAYS: Final = frozenset(
    (
        *(list, set, frozenset, tuple, collections.deque, abc.Sequence, abc.MutableSequence),
        *(abc.Set, abc.MutableSet, abc.Collection, abc.Iterable, abc.Iterator),
    )
)
_OBJECTS: Final = frozenset((dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict, collections.defaultdict))


@dataclass(slots=True, eq=False)
class Shape:
    """One form that a value may have; the alternatives of a union are several."""

    hidden: bool = False
    scalar: bool = False
    fields: "dict[str, Shapes]" = field(default_factory=dict)
    values: "Shapes" = ()
    """Of an object with any names."""
    items: "Shapes" = ()
    """Of an array."""


Shapes: TypeAlias = tuple[Shape, ...]

_HIDDEN: Final[Shapes] = (Shape(hidden=True),)
_SCALAR: Final[Shapes] = (Shape(scalar=True),)


def _anything() -> Shapes:
    shape = Shape(scalar=True)
    shape.values = shape.items = (shape,)
    return (shape,)


_ANYTHING: Final = _anything()


def shown(value: Any, shapes: Shapes) -> Any:
    """Copy a JSON value with a mask in the place of everything that may not be shown."""
    if any(shape.hidden for shape in shapes):
        return _MASK
    if isinstance(value, dict):
        return _shown_object(value, shapes)
    if isinstance(value, list):
        items = tuple(inner for shape in shapes for inner in shape.items)
        return [shown(item, items) for item in value] if items else _MASK
    return value if any(shape.scalar for shape in shapes) else _MASK


def _shown_object(value: Mapping[str, Any], shapes: Shapes) -> Any:
    if value and not any(shape.fields or shape.values for shape in shapes):
        return _MASK
    result: dict[str, Any] = {}
    for name, inner in value.items():
        known = tuple(one for shape in shapes for one in (*shape.fields.get(name, ()), *shape.values))
        if known:
            result[name] = shown(inner, known)
    return result


class ShapeReader:
    """Reads types; each model is read once, also where it refers to itself."""

    def __init__(self) -> None:
        self._known: dict[Any, Shapes] = {}

    def of(self, kind: Any) -> Shapes:
        """Find the shapes of a type."""
        if kind is Any or kind is object or kind is JsonValue:
            return _ANYTHING
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return _HIDDEN if _is_marked(arguments[1:]) else self.of(arguments[0])
        if origin in (Union, UnionType):
            return tuple(self._of_each(arguments))
        if origin in (Required, NotRequired):
            return self.of(arguments[0])
        if origin is Literal or kind is None:
            return _SCALAR
        if (origin or kind) in _ARRAYS:
            return (Shape(items=tuple(self._of_each(arguments or (Any,)))),)
        if (origin or kind) in _OBJECTS:
            return self._of_mapping(arguments)
        return self._of_named(kind, origin)

    def of_fields(self, fields: Mapping[str, Any]) -> Shapes:
        """Find the shapes of an object with these names and types."""
        return (Shape(fields={name: self.of(kind) for name, kind in fields.items()}),)

    def _of_each(self, kinds: tuple[Any, ...]) -> Iterator[Shape]:
        for kind in kinds:
            if kind is not ...:
                yield from self.of(kind)

    def _of_mapping(self, arguments: tuple[Any, ...]) -> Shapes:
        names, values = arguments or (str, Any)
        return _HIDDEN if any(shape.hidden for shape in self.of(names)) else (Shape(values=self.of(values)),)

    def _of_named(self, kind: Any, origin: Any) -> Shapes:
        """Look behind the name of a type."""
        meant = getattr(kind, "__supertype__", None) or getattr(kind, "__value__", None)
        if meant is not None:
            return self._of_alias(kind, meant)
        named = kind if inspect.isclass(kind) else origin
        if not inspect.isclass(named) or issubclass(named, SecretStr | SecretBytes | Secret):
            return _HIDDEN
        return self._known[named] if named in self._known else self._of_class(named)

    def _of_alias(self, alias: Any, meant: Any) -> Shapes:
        if alias not in self._known:
            self._known[alias] = _HIDDEN  # what an alias finds inside of itself stays hidden
            self._known[alias] = self.of(meant)
        return self._known[alias]

    def _of_class(self, named: type) -> Shapes:
        fields = typed_fields(named)
        if fields is None:
            return _SCALAR
        if fields.root is not None:
            return self._of_alias(named, fields.root)
        shape = Shape()
        self._known[named] = (shape,)
        for name, kind in fields.named:
            shape.fields[name] = (*shape.fields.get(name, ()), *self.of(kind))
        if issubclass(named, tuple):
            shape.items = tuple(one for inner in shape.fields.values() for one in inner)
        return (shape,)


def _is_marked(extras: tuple[Any, ...]) -> bool:
    return any(extra is Sensitive or isinstance(extra, Sensitive) for extra in extras)
