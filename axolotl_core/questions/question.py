"""Asking a client which directories its user works in."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from axolotl_core.arguments import explain_findings
from axolotl_core.errors import Declined, InputRequired
from axolotl_core.questions.form_schema import form_of
from axolotl_core.schema import JsonSchema

_SHOWN_PROBLEMS: Final = 10
_QUOTED_VALUE: Final = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)
"""Where msgspec repeats what the other side sent."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only the caller can answer."""

    method: str
    params: Mapping[str, Any]
    """Plain JSON in the form of the latest revision; it may be shared, so it is not to be altered."""
    requires: Mapping[str, Any]
    """What the client must have declared, e.g. `{"elicitation": {"form": {}}}`."""
    reference: str | None = None
    """What a revision that has ids for visits of web pages should call this one."""
    must_be_asked: bool = False
    """Whether an answer counts only if this server asked before; one that came along unasked does not."""


class InvalidAnswer(ValueError):
    """The answer has not the shape or the values that were asked for; the text is public and names the field."""


def invalid_answer(problems: Sequence[str]) -> InvalidAnswer:
    """Tell all that is wrong with an answer, in one text."""
    shown = list(problems[:_SHOWN_PROBLEMS])
    if len(problems) > _SHOWN_PROBLEMS:
        shown.append(f"and {len(problems) - _SHOWN_PROBLEMS} more")
    return InvalidAnswer("Invalid answer: " + "; ".join(shown))


def invalid_shape(error: msgspec.ValidationError) -> InvalidAnswer:
    """Rewrite msgspec's finding as `field: what is wrong`, without the other side's values."""
    text, _, path = str(error).rpartition(" - at `$")
    found = _QUOTED_VALUE.sub(r"\1", text or path)
    place = path.rstrip("`").removeprefix(".") if text else ""
    return invalid_answer([f"{place or 'result'}: {found}"])


def only_asks(error: BaseException) -> bool:
    """Tell whether code was left for want of answers alone, also by several questions of a task group."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(only_asks, error.exceptions))
    return isinstance(error, InputRequired)


_ModelT = TypeVar("_ModelT", bound=BaseModel)

_METHOD: Final = "elicitation/create"
_EXACT: Final = 2**53
"""Below this every whole number that a float can hold is the one that was meant."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}(?:\.0{1,18})?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,32}(?:\.[0-9]{1,32})?(?:[eE][+-]?[0-9]{1,3})?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNREADABLE_URL: Final = re.compile(r"[^!-~]|[\"<>\\^`{|}]")


def form_question(model: type[BaseModel], message: str) -> Question:
    """Ask the user to fill in a model, whose fields are text, numbers, booleans, dates, URLs or choices.

    Constraints, titles, descriptions and defaults are shown to the user as far as a form has words for them; all of
    them hold when the answer is read. A Literal or an Enum of strings is a choice, a list of one a multiple choice;
    `Titles` names the choices. A field that may be None may be left blank. Secrets must not be asked for here.

    Raises:
        ConfigurationError: if a field is more than a form can ask; the text says what to use instead.
    """
    params = {"mode": "form", "message": message, "requestedSchema": form_of(model).schema}
    return Question(method=_METHOD, params=params, requires={"elicitation": {"form": {}}})


def url_question(url: str, message: str, reference: str | None = None) -> Question:
    """Ask the user to open a web page, where secrets may be asked for; the answer is no proof of what happens there.

    Raises:
        ValueError: if it is no URL of a web page, or one that carries credentials.
    """
    if _UNREADABLE_URL.search(url):
        raise ValueError("The URL holds characters that must be percent-encoded")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("The URL must begin with https:// (or http://) and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("The URL must not carry credentials: the page has to find out itself who opened it")
    params = {"mode": "url", "message": message, "url": url}
    return Question(method=_METHOD, params=params, requires={"elicitation": {"url": {}}}, reference=reference)


def read_form(model: type[_ModelT], response: Any) -> _ModelT:
    """Read a filled-in form from a client's bare result; what was not asked for is passed over.

    Raises:
        Declined: if the user did not want to answer.
        InvalidAnswer: if it is no answer to the form.
    """
    form = form_of(model)
    content = _accepted(response).get("content", {})
    if not isinstance(content, dict):
        raise invalid_answer(["content: must be an object"])
    properties = form.schema["properties"].items()
    given = {name: _reading(name, schema, content[name]) for name, schema in properties if name in content}
    try:
        raw = to_json({**form.blank, **given})
    except (PydanticSerializationError, ValueError):
        raise invalid_answer(["content: holds something that JSON has no form for"]) from None
    try:
        filled: _ModelT = model.__pydantic_validator__.validate_json(raw, strict=True)
    except ValidationError as error:
        raise invalid_answer(explain_findings(error, (), place=("content",))) from None
    return filled


def read_url(response: Any) -> None:
    """Read from a client's bare result that the user agreed to open the URL.

    Raises:
        Declined: if the user did not agree.
        InvalidAnswer: if it is no answer at all.
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


def _reading(name: str, schema: JsonSchema, value: Any) -> Any:
    """Take text for the number or boolean it spells, and refuse what a lenient parser would take for something else."""
    try:
        if isinstance(value, list | dict):
            return _several(value)
        return _READINGS[schema["type"]](schema, value)
    except InvalidAnswer as problem:
        raise invalid_answer([f"content.{name}: {problem}"]) from None


def _text(schema: JsonSchema, value: Any) -> Any:
    if isinstance(value, str) and "date" in schema.get("format", "") and not _DATE.match(value):
        raise InvalidAnswer("must be a date in the form YYYY-MM-DD, with a time if one was asked for")
    return value


def _integer(schema: JsonSchema, value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value.partition(".")[0])
    return value


def _number(schema: JsonSchema, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return value
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise InvalidAnswer("must be a number of double precision")
    return number


def _boolean(schema: JsonSchema, value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _several(value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidAnswer("must be text, a number, a boolean or a list of texts")
    return value


def _as_it_is(schema: JsonSchema, value: Any) -> Any:
    return value


_READINGS: Final[Mapping[str, Callable[[JsonSchema, Any], Any]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _as_it_is,
}


_SCHEME: Final = "file://"
_QUESTION: Final = Question(method="roots/list", params={}, requires={"roots": {}})


class Root(msgspec.Struct, frozen=True):
    """A directory or file that the user works with: a hint of the client's, not a permission."""

    uri: str
    """A `file://` URI."""
    name: str | None = None


class _Roots(msgspec.Struct):
    roots: tuple[Root, ...]


def roots_question() -> Question:
    """Ask for the roots."""
    return _QUESTION


def read_roots(response: Any) -> tuple[Root, ...]:
    """Read the roots from a client's bare result.

    Raises:
        InvalidAnswer: if it is no list of roots, or one of them is no `file://` URI.
    """
    try:
        roots = msgspec.convert(response, _Roots).roots
    except msgspec.ValidationError as error:
        raise invalid_shape(error) from None
    problems = [
        f"roots[{number}].uri: must begin with {_SCHEME}"
        for number, root in enumerate(roots)
        if root.uri[: len(_SCHEME)].lower() != _SCHEME
    ]
    if problems:
        raise invalid_answer(problems)
    return roots
