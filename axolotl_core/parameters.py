"""The parameters of a function as the arguments of a tool: each has a validator and a schema of its own."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from axolotl_core.arguments import ParseArguments, explain_findings, refusal, unknown_argument
from axolotl_core.schema import JsonSchema, adapter_of, admits_extra, closed, schema_of, schemas_of

__all__ = ["Parameter", "parameters_parser", "parameters_schema"]

_MUTABLE: Final = (list, dict, set, bytearray)
"""Defaults of these types are copied for each call, as pydantic does for the fields of a model."""
_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: what callers call it, what it takes, and what holds where it is left out."""

    name: str
    public_name: str
    annotation: Any
    description: str | None
    required: bool
    default: Callable[[], Any] | None
    """Makes the value of a parameter that is left out; None leaves it to the function."""
    shown_default: Any = PydanticUndefined

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any, description: str | None) -> "Parameter":
        """Read a parameter; `default` is `...` where there is none, and may be a pydantic `Field`."""
        info = _field_info(annotation, default)
        if info is None:
            shown = PydanticUndefined if default is ... else default
            copied = partial(deepcopy, default) if isinstance(default, _MUTABLE) else None
            return cls(name, name, annotation, description, default is ..., copied, shown)
        required = info.is_required()
        public_name = info.validation_alias if isinstance(info.validation_alias, str) else name
        make = None if required else partial(info.get_default, call_default_factory=True)
        said = info.description or description
        return cls(name, public_name, _standalone(info), said, required, make, info.default)

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """What validates its values."""
        return adapter_of(self.annotation)


def parameters_schema(parameters: Sequence[Parameter]) -> JsonSchema:
    """Describe the arguments of a function."""
    schemas = [schema_of(parameter.annotation, "validation") for parameter in parameters]
    definitions: JsonSchema = {}
    close = _unchanged if any(map(admits_extra, schemas)) else closed
    if any("$defs" in schema for schema in schemas):
        schemas, definitions = schemas_of([parameter.adapter for parameter in parameters])
    schemas = list(map(close, schemas))
    properties = {one.public_name: _described(one, schema) for one, schema in zip(parameters, schemas, strict=True)}
    required = [parameter.public_name for parameter in parameters if parameter.required]
    schema: JsonSchema = {"additionalProperties": False, "properties": properties, "type": "object"}
    if required:
        schema["required"] = required
    return close({**schema, "$defs": definitions}) if definitions else schema


def parameters_parser(parameters: Sequence[Parameter], *, strict: bool) -> ParseArguments:
    """Compile what turns raw JSON into the keyword arguments of a function."""
    by_name = {parameter.public_name: parameter for parameter in parameters}
    admits = any(admits_extra(schema_of(parameter.annotation, "validation")) for parameter in parameters)
    validators = {name: _validator(parameter, strict, admits) for name, parameter in by_name.items()}

    def parse(raw: bytes) -> dict[str, Any]:
        given = _read_fields(raw)
        arguments: dict[str, Any] = {}
        problems: list[str] = []
        for name, parameter in by_name.items():
            value = given.pop(name, None)
            if value is None:
                _fill_in(parameter, arguments, problems)
                continue
            try:
                arguments[parameter.name] = validators[name](bytes(value))
            except ValidationError as error:
                problems += explain_findings(error, (), place=(name,))
        problems += (unknown_argument(name, tuple(by_name)) for name in given)
        if problems:
            raise refusal(problems)
        return arguments

    return parse


def _fill_in(parameter: Parameter, arguments: dict[str, Any], problems: list[str]) -> None:
    if parameter.required:
        problems.append(f"{parameter.public_name}: required, but missing")
    elif parameter.default is not None:
        arguments[parameter.name] = parameter.default()


def _validator(parameter: Parameter, strict: bool, admits: bool) -> Callable[[bytes], Any]:
    validate = parameter.adapter.validator.validate_json
    extra: Literal["forbid"] | None = None if admits else "forbid"
    return lambda raw: validate(raw, strict=strict, extra=extra)


def _unchanged(schema: JsonSchema) -> JsonSchema:
    return schema


def _described(parameter: Parameter, schema: Mapping[str, Any]) -> JsonSchema:
    described = dict(schema)
    if parameter.description and "description" not in described:
        described["description"] = parameter.description
    if parameter.shown_default is not PydanticUndefined:
        described["default"] = to_jsonable_python(parameter.shown_default)
    return described


def _field_info(annotation: Any, default: Any) -> FieldInfo | None:
    """Merge what pydantic's `Field` says about a parameter, None where nothing was said."""
    said = get_origin(annotation) is Annotated and any(isinstance(extra, FieldInfo) for extra in get_args(annotation))
    if isinstance(default, FieldInfo) or (said and default is not ...):
        return FieldInfo.from_annotated_attribute(annotation, default)
    return FieldInfo.from_annotation(annotation) if said else None


def _standalone(info: FieldInfo) -> Any:
    """Give the type without what only the field of a model can have: its name and its default."""
    said = copy(info)
    said.alias = said.validation_alias = said.serialization_alias = None
    said.default, said.default_factory, said.metadata = PydanticUndefined, None, []
    return Annotated[info.annotation, *info.metadata, said]
