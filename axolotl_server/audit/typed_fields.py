"""The fields of a class that pydantic reads from a JSON object: their names in JSON, and their types."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints, is_typeddict

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel
from pydantic.fields import FieldInfo

from axolotl_core.audit import Sensitive

__all__ = ["TypedFields", "typed_fields"]


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
