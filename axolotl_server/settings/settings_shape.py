"""The shape of the settings: which keys exist, and which values they have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

SecretForm: TypeAlias = Literal["one", "many"]

_TABLES = (dict, Mapping)
_LISTS = (list, tuple, set, frozenset, Sequence, Iterable)


def below(annotation: Any, key: str | int) -> Any:
    """Return the type of the value at a key of a table or an index of a list; None if there cannot be one."""
    for one in _alternatives(annotation):
        if is_model(one):
            field = one.model_fields.get(key)
            found = _extra(one) if field is None else field.annotation
        elif isinstance(key, int):
            found = _argument(one, _LISTS, 0)
        else:
            found = _argument(one, _TABLES, -1)
        if found is not None:
            return found
    return None


def fields_of(annotation: Any) -> dict[str, FieldInfo]:
    """Return the fields of a table; none if users choose all of its keys."""
    models = [one for one in _alternatives(annotation) if is_model(one)]
    return {name: field for model in models for name, field in model.model_fields.items()}


def keys_of(annotation: Any) -> list[str]:
    """List the keys that a table may have in a source, including those for files of secrets."""
    fields = fields_of(annotation)
    files = [f"{name}_file" for name, field in fields.items() if secret_form(field.annotation)]
    return [*fields, *files]


def secret_form(annotation: Any) -> SecretForm | None:
    """Tell whether a type is a secret or a list of secrets."""
    for one in _alternatives(annotation):
        if isinstance(one, type) and issubclass(one, SecretStr):
            return "one"
        items = _argument(one, _LISTS, 0)
        if items is not None and secret_form(items) == "one":
            return "many"
    return None


def is_table(annotation: Any) -> bool:
    """Tell whether a setting is a table."""
    return any(is_model(one) or get_origin(one) in _TABLES for one in _alternatives(annotation))


def is_list(annotation: Any) -> bool:
    """Tell whether a setting is a list."""
    return any(get_origin(one) in _LISTS for one in _alternatives(annotation))


def is_nullable(annotation: Any) -> bool:
    """Tell whether a setting can be null."""
    return any(one is NoneType for one in _alternatives(annotation))


def tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """List the models in a type, including those of its items and values."""
    for one in _alternatives(annotation):
        if is_model(one):
            yield one
        for inner in (_argument(one, _TABLES, -1), _argument(one, _LISTS, 0)):
            if inner is not None:
                yield from tables_in(inner)


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    else:
        yield annotation


def is_model(annotation: Any) -> bool:
    """Tell whether a type is a table with fixed keys."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _argument(annotation: Any, origins: tuple[Any, ...], index: int) -> Any:
    arguments = get_args(annotation)
    return arguments[index] if arguments and get_origin(annotation) in origins else None


def _extra(model: type[BaseModel]) -> Any:
    """Return the type of extra fields, if the model allows them."""
    if model.model_config.get("extra") != "allow":
        return None
    return _argument(get_type_hints(model).get("__pydantic_extra__"), _TABLES, -1)
