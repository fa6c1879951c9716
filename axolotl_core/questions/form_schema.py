"""Form schemas, generated from pydantic models within the limits of the protocol."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from axolotl_core.errors import ConfigurationError
from axolotl_core.schema import JsonSchema, resolve, schema_of

_CACHE_SIZE: Final = 1024
_FORMATS: Final = frozenset({"date", "date-time", "email", "uri"})
_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}
_DEFAULTS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}
_NULL: Final = {"type": "null"}
_SIMPLE_TYPES: Final = "str, int, float, bool, date, datetime, AnyUrl, or a Literal or Enum of strings"


class Titles:
    """The titles of the choices of a form field, in order.

    `Annotated[Literal["s", "m"], Titles("Small", "Medium")]`, or with an Enum of strings, or with a list of either for
    a multiple choice. `legacy=True` writes the titles of a single choice as `enumNames`, as in older revisions. Clients
    of those revisions get `enumNames` in any case.
    """

    def __init__(self, *titles: str, legacy: bool = False) -> None:
        self._titles = titles
        self._legacy = legacy

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return self._with_titles(handler(core_schema), handler.resolve_ref_schema)

    def _with_titles(self, reference: JsonSchema, resolve: Callable[[JsonSchema], JsonSchema]) -> JsonSchema:
        schema = resolve(reference)
        if "$ref" in reference:
            schema = {key: value for key, value in schema.items() if key != "title"}  # the name of the Enum
        if "anyOf" in schema:
            members = [one if one == _NULL else self._with_titles(one, resolve) for one in schema["anyOf"]]
            return {**schema, "anyOf": members}
        if "items" in schema:
            choices = _choices_of(resolve(schema["items"]))
            return {**schema, "items": {"anyOf": self._pairs(choices)}}
        choices = _choices_of(schema)
        rest = {key: value for key, value in schema.items() if key not in ("const", "enum")}
        if self._legacy:
            return {**rest, "enum": list(choices), "enumNames": [pair["title"] for pair in self._pairs(choices)]}
        return {**rest, "oneOf": self._pairs(choices)}

    def _pairs(self, choices: Sequence[Any]) -> list[JsonSchema]:
        if len(choices) != len(self._titles):
            given = ", ".join(map(repr, self._titles))
            raise ConfigurationError(
                f"Titles({given}) do not match the choices {list(choices)!r}: "
                "pass one title per choice of a Literal or Enum of strings"
            )
        return [{"const": choice, "title": title} for choice, title in zip(choices, self._titles, strict=True)]


class FormSchema(msgspec.Struct, frozen=True):
    """A model as a form. Constraints that a form cannot express, such as patterns, apply when the answer is read."""

    schema: JsonSchema
    """The `requestedSchema`, as in the latest revision. It is cached."""
    blank: Mapping[str, None]
    """None for each field that can be left blank, but has no default in the model."""


@lru_cache(maxsize=_CACHE_SIZE)
def form_of(model: type[BaseModel]) -> FormSchema:
    """Convert a model to a form.

    Raises:
        ConfigurationError: if a form cannot ask for a field. The text says what to use instead.
    """
    try:
        schema = schema_of(model, "validation")
    except ConfigurationError as error:
        raise ConfigurationError(f"{model.__name__}: {error}") from None
    if "properties" not in schema:
        raise ConfigurationError(f"{model.__name__} is not a form: use a BaseModel with fields of simple types")
    fields = {name: _Field(f"{model.__name__}.{name}", one, schema) for name, one in schema["properties"].items()}
    without_default = schema.get("required", ())
    required = [name for name in without_default if not fields[name].nullable]
    flat: JsonSchema = {"type": "object", "properties": {name: field.flat() for name, field in fields.items()}}
    if required:
        flat["required"] = required
    return FormSchema(flat, dict.fromkeys(name for name in without_default if fields[name].nullable))


class _Field:
    """A field of a model, without references and nulls."""

    def __init__(self, place: str, schema: JsonSchema, root: JsonSchema) -> None:
        self._place = place
        self._root = root
        self._schema = resolve(schema, root)
        self.nullable = None in self._schema.get("enum", ())
        if "anyOf" in self._schema:
            members = [one for one in self._schema["anyOf"] if one != _NULL]
            if len(members) != 1:
                self._refuse(f"a form has no unions: use one of {_SIMPLE_TYPES}")
            rest = {key: value for key, value in self._schema.items() if key != "anyOf"}
            self._schema, self.nullable = {**resolve(members[0], root), **rest}, True

    def flat(self) -> JsonSchema:
        """Return the schema of the field within the limits of the protocol."""
        schema = self._schema
        if not schema.keys().isdisjoint(("const", "enum", "oneOf")):
            return self._with_labels({"type": "string", **self._choice(schema)})
        kind: Any = schema.get("type")
        if kind == "array":
            return self._with_labels({"type": kind, "items": self._items(), **_limits(schema, kind)})
        if kind == "object":
            self._refuse("a form is flat: put the fields into the model itself, or ask a second question")
        if kind not in _LIMITS:
            self._refuse(f"a form cannot ask for this: use {_SIMPLE_TYPES}")
        if schema.get("format") == "password":
            self._refuse("a form must not ask for secrets: let the user open a URL instead")
        flat: JsonSchema = {"type": kind, **_limits(schema, kind)}
        if schema.get("format") in _FORMATS:
            flat["format"] = schema["format"]
        return self._with_labels(flat)

    def _choice(self, schema: JsonSchema) -> JsonSchema:
        pairs = schema.get("oneOf")
        choices = [choice for choice in _choices_of(schema) if choice is not None]
        if not choices or not all(isinstance(choice, str) for choice in choices):
            self._refuse("the choices of a form are strings: use a Literal or Enum of strings")
        if pairs is not None:
            return {"oneOf": pairs}
        names = {"enumNames": schema["enumNames"]} if "enumNames" in schema else {}
        return {"enum": choices, **names}

    def _items(self) -> JsonSchema:
        items = resolve(self._schema.get("items", {}), self._root)
        pairs = items.get("anyOf", items.get("oneOf"))
        choices = _choices_of(items if pairs is None else {"oneOf": pairs})
        if not choices or not all(isinstance(choice, str) for choice in choices):
            self._refuse("the only lists in a form are lists of choices: use list[Literal[...]] or a list of an Enum")
        if "enumNames" in items:
            pairs = [{"const": one, "title": title} for one, title in zip(choices, items["enumNames"], strict=True)]
        return {"type": "string", "enum": choices} if pairs is None else {"anyOf": pairs}

    def _with_labels(self, flat: JsonSchema) -> JsonSchema:
        for label in ("title", "description"):
            if isinstance(self._schema.get(label), str):
                flat[label] = self._schema[label]
        if type(self._schema.get("default")) in _DEFAULTS[flat["type"]]:
            flat["default"] = self._schema["default"]
        return flat

    def _refuse(self, problem: str) -> NoReturn:
        raise ConfigurationError(f"{self._place}: {problem}")


def _choices_of(schema: JsonSchema) -> list[Any]:
    """List the values of a Literal or Enum; empty for other types."""
    if "oneOf" in schema:
        return [one.get("const") for one in schema["oneOf"]]
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _limits(schema: JsonSchema, kind: str) -> JsonSchema:
    limits = {key: schema[key] for key in _LIMITS[kind] if key in schema}
    if kind == "integer" and "exclusiveMinimum" in schema:
        lowest = schema["exclusiveMinimum"] + 1
        limits["minimum"] = max(lowest, limits.get("minimum", lowest))
    if kind == "integer" and "exclusiveMaximum" in schema:
        highest = schema["exclusiveMaximum"] - 1
        limits["maximum"] = min(highest, limits.get("maximum", highest))
    return limits
