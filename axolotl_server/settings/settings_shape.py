"""The shape of the settings: which keys exist, and what their values can be."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel, SecretStr

from axolotl_server.settings.server import ServerSettings


class Shape(msgspec.Struct, frozen=True):
    """What the value of a setting can be: a table, a list, a secret, the path of a file with one, or something else."""

    fields: Mapping[str, "Shape"] = msgspec.field(default_factory=dict)
    """The keys of a table. Each secret has a second one, for the path of a file."""
    others: "Shape | None" = None
    """The values in a table whose keys users choose."""
    items: "Shape | None" = None
    """The items of a list."""
    is_secret: bool = False
    is_nullable: bool = False
    secret: str | None = None
    """Of the path of a file, the key of the secret in it."""

    @property
    def is_table(self) -> bool:
        """Whether the value is a table."""
        return bool(self.fields) or self.others is not None

    def at(self, *keys: str | int) -> "Shape":
        """Return the shape of a value in a table or list; there is nothing in it if there cannot be one."""
        shape = self
        for key in keys:
            found = shape.items if isinstance(key, int) else shape.fields.get(key) or shape.others
            shape = found or _NOTHING
        return shape


_NOTHING: Final = Shape()


def shape_of(annotation: Any) -> Shape:
    """Find the shape of a type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return shape_of(arguments[0])
    if origin in (Union, UnionType):
        first = next(one for one in arguments if one is not NoneType)
        return msgspec.structs.replace(shape_of(first), is_nullable=NoneType in arguments)
    if origin is dict:
        return Shape(others=shape_of(arguments[1]))
    if origin in (tuple, frozenset):
        return Shape(items=shape_of(arguments[0]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _shape_of_table(annotation)
    return Shape(is_secret=annotation is SecretStr)


def _shape_of_table(model: type[BaseModel]) -> Shape:
    fields = {name: shape_of(field.annotation) for name, field in model.model_fields.items()}
    secrets = {name: shape for name, shape in fields.items() if (shape.items or shape).is_secret}
    files = {f"{name}_file": Shape(items=shape.items and _NOTHING, secret=name) for name, shape in secrets.items()}
    extra = get_type_hints(model)["__pydantic_extra__"] if model.model_config.get("extra") == "allow" else None
    return Shape({**fields, **files}, shape_of(extra).others)


SETTINGS: Final = shape_of(ServerSettings)
"""The shape of all settings."""
