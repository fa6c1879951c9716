"""Questions that only the caller can answer: forms, URLs and roots."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import msgspec
from pydantic import BaseModel, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticSerializationError, to_json

from axolotl_core.arguments import explain_findings, join_problems
from axolotl_core.errors import ConfigurationError, Declined, InputRequired
from axolotl_core.schema import JsonSchema, resolve, schema_of

_QUOTED_VALUE: Final = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)
"""A value of the client in an error of msgspec."""
_MAX_EXACT_INTEGER: Final = 2**53
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}(?:\.0{1,18})?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,32}(?:\.[0-9]{1,32})?(?:[eE][+-]?[0-9]{1,3})?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INVALID_IN_URL: Final = re.compile(r"[^!-~]|[\"<>\\^`{|}]")
_ELICITATION: Final = "elicitation/create"
KEYS: Final = {_ELICITATION: "ask", "sampling/createMessage": "sample", "roots/list": "roots"}
"""The methods of all questions, each with the beginning of the keys that number them."""
_FILE_SCHEME: Final = "file://"

_ModelT = TypeVar("_ModelT", bound=BaseModel)
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


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question that only the caller can answer."""

    method: str
    params: Mapping[str, Any]
    """Plain JSON, as in the latest revision. Do not change it, because it may be shared."""
    requires: Mapping[str, Any]
    """The capability that the client needs, such as `{"elicitation": {"form": {}}}`."""
    reference: str | None = None
    """The ID of a URL question, in revisions that have such IDs."""
    must_be_asked: bool = False
    """Whether only answers to a question that this server asked are accepted, and no unsolicited answers."""


class InvalidAnswer(ValueError):
    """The answer does not match the question. The text is public and contains the name of the field."""


def invalid_answer(problems: Sequence[str]) -> InvalidAnswer:
    """Combine all problems with an answer into one error."""
    return InvalidAnswer(f"Invalid answer: {join_problems(problems)}")


def invalid_shape(error: msgspec.ValidationError) -> InvalidAnswer:
    """Translate an error of msgspec to `field: problem`, without the client's values."""
    text, _, path = str(error).rpartition(" - at `$")
    found = _QUOTED_VALUE.sub(r"\1", text or path)
    place = path.rstrip("`").removeprefix(".") if text else ""
    return invalid_answer([f"{place or 'result'}: {found}"])


def needs_input(error: BaseException) -> bool:
    """Whether a run ended only because answers are missing, also to several questions of a task group."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(needs_input, error.exceptions))
    return isinstance(error, InputRequired)


def form_question(model: type[BaseModel], message: str) -> Question:
    """Ask the user to fill in a model, whose fields are strings, numbers, booleans, dates, URLs or choices.

    The form shows constraints, titles, descriptions and defaults, as far as the protocol allows. All constraints are
    checked when the answer is read. A Literal or Enum of strings is a choice, a list of one a multiple choice; `Titles`
    sets the titles of the choices. A field that can be None can be left blank. Do not ask for secrets in a form.

    Raises:
        ConfigurationError: if a form cannot ask for a field. The text says what to use instead.
    """
    params = {"mode": "form", "message": message, "requestedSchema": form_of(model).schema}
    return Question(method=_ELICITATION, params=params, requires={"elicitation": {"form": {}}})


def url_question(url: str, message: str, reference: str | None = None) -> Question:
    """Ask the user to open a web page, which can ask for secrets. The answer does not prove what happens there.

    Raises:
        ValueError: if it is not a URL of a web page, or contains credentials.
    """
    if _INVALID_IN_URL.search(url):
        raise ValueError("The URL contains characters that must be percent-encoded")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("The URL must begin with https:// (or http://) and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("The URL must not contain credentials: the page must authenticate the user itself")
    params = {"mode": "url", "message": message, "url": url}
    return Question(method=_ELICITATION, params=params, requires={"elicitation": {"url": {}}}, reference=reference)


def read_form(model: type[_ModelT], response: Any) -> _ModelT:
    """Parse a filled-in form. Fields that are not part of the form are ignored.

    Raises:
        Declined: if the user did not answer.
        InvalidAnswer: if the answer does not match the form.
    """
    form = form_of(model)
    content = _accepted(response).get("content", {})
    if not isinstance(content, dict):
        raise invalid_answer(["content: must be an object"])
    properties = form.schema["properties"].items()
    given = {name: _converted(f"content.{name}", one, content[name]) for name, one in properties if name in content}
    try:
        raw = to_json({**form.blank, **given})
    except (PydanticSerializationError, ValueError):
        raise invalid_answer(["content: cannot be serialized to JSON"]) from None
    try:
        filled: _ModelT = model.__pydantic_validator__.validate_json(raw, strict=True)
    except ValidationError as error:
        raise invalid_answer(explain_findings(error, (), place=("content",))) from None
    return filled


def read_url(response: Any) -> None:
    """Check that the user agreed to open a URL.

    Raises:
        Declined: if the user did not agree.
        InvalidAnswer: if the answer is malformed.
    """
    _accepted(response)


def _accepted(response: Any) -> Mapping[str, Any]:
    if not isinstance(response, dict):
        raise invalid_answer(["result: must be an object"])
    match response.get("action"):
        case "accept":
            return response
        case "decline" | "cancel" as action:
            raise Declined(action)
    raise invalid_answer(["action: must be accept, decline or cancel"])


def _converted(place: str, schema: JsonSchema, value: Any) -> Any:
    """Convert strings to numbers and booleans, and reject values that a lenient parser would misread."""
    kind = schema["type"]
    if isinstance(value, list | dict):
        if isinstance(value, dict) or not all(isinstance(one, str) for one in value):
            raise invalid_answer([f"{place}: must be a string, a number, a boolean or a list of strings"])
    elif kind == "number" and isinstance(value, int | float | str) and not isinstance(value, bool):
        return _number(place, value)
    elif kind == "integer" and isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INTEGER:
        return int(value)
    elif kind == "integer" and isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value.partition(".")[0])
    elif kind == "boolean" and value in ("true", "false"):
        return value == "true"
    elif kind == "string" and isinstance(value, str) and "date" in schema.get("format", "") and not _DATE.match(value):
        raise invalid_answer([f"{place}: must be a date in the form YYYY-MM-DD, with a time if required"])
    return value


def _number(place: str, value: float | str) -> Any:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return value
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise invalid_answer([f"{place}: must be a double-precision number"])
    return number


class Root(msgspec.Struct, frozen=True):
    """A directory or file that the user works with. It is a hint, not a permission."""

    uri: str
    """A `file://` URI."""
    name: str | None = None


class _Roots(msgspec.Struct):
    roots: tuple[Root, ...]


def roots_question() -> Question:
    """Ask the client for its roots."""
    return Question(method="roots/list", params={}, requires={"roots": {}})


def read_roots(response: Any) -> tuple[Root, ...]:
    """Parse a list of roots.

    Raises:
        InvalidAnswer: if it is not a list of roots, or one of them is not a `file://` URI.
    """
    try:
        roots = msgspec.convert(response, _Roots).roots
    except msgspec.ValidationError as error:
        raise invalid_shape(error) from None
    problems = [
        f"roots[{number}].uri: must begin with {_FILE_SCHEME}"
        for number, root in enumerate(roots)
        if root.uri[: len(_FILE_SCHEME)].lower() != _FILE_SCHEME
    ]
    if problems:
        raise invalid_answer(problems)
    return roots


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
