"""Arguments as a record may show them."""

import collections
import dataclasses
import inspect
from collections import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from pydantic import AliasChoices, AliasPath, BaseModel, JsonValue, RootModel, Secret, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from axolotl_core.features.function_feature import FunctionFeature, Signature
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.audit import Sensitive
from axolotl_core.protocol.wire import decode_exactly
from axolotl_server.audit.records import Redact


class TypedFields(NamedTuple):
    """Names with types, a name for every way to write a field; or the one type that a class stands for."""

    named: tuple[tuple[str, Any], ...] = ()
    root: Any = None


def typed_fields(kind: type) -> TypedFields | None:
    """Read a model, a dataclass, a typed dictionary or a named tuple; None for any other class."""
    if issubclass(kind, RootModel):
        return TypedFields(root=_type_of(kind.model_fields["root"]))
    described = kind.model_fields if issubclass(kind, BaseModel) else getattr(kind, "__pydantic_fields__", None)
    if described is not None:
        return TypedFields(tuple(_of_described(described)))
    if dataclasses.is_dataclass(kind) or is_typeddict(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return TypedFields(tuple(get_type_hints(kind, include_extras=True).items()))
    return None


def _of_described(fields: Mapping[str, FieldInfo]) -> Iterator[tuple[str, Any]]:
    for name, info in fields.items():
        kind = _type_of(info)
        yield name, kind
        alias = info.validation_alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else (alias,):
            if isinstance(choice, AliasPath):
                # Only a part of what stands there belongs to the field.
                yield str(choice.path[0]), Annotated[Any, Sensitive]
            elif choice is not None:
                yield choice, kind


def _type_of(info: FieldInfo) -> Any:
    """Give the type with the marks that pydantic took off it."""
    return Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation


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


_MOST_BYTES: Final = 16 * 1024
"""Larger arguments are not shown at all: a record is no place for them."""

_encode: Final = msgspec.json.Encoder().encode


def nothing_shown(spec: FeatureSpec) -> None:
    """Show no arguments."""


def redactor(spec: FeatureSpec) -> Redact | None:
    """Compile what writes the arguments of a feature; None for those whose arguments have no types, as raw schemas."""
    shapes = _shapes_of(spec.feature)
    if shapes is None:
        return None

    def redact(raw: bytes) -> msgspec.Raw | None:
        if len(raw) > _MOST_BYTES:
            return None
        try:
            return msgspec.Raw(_encode(shown(decode_exactly(raw), shapes)))
        except (ValueError, RecursionError):
            return None

    return redact


def _shapes_of(feature: Any) -> Shapes | None:
    reader = ShapeReader()
    if isinstance(feature, FunctionFeature):
        parameters = Signature.of(feature.function, skip_first=False).parameters
        return reader.of_fields({parameter.public_name: parameter.annotation for parameter in parameters})
    model = getattr(feature, "input_model", None)
    if isinstance(model, type) and issubclass(model, BaseModel):
        return reader.of(model)
    return None
