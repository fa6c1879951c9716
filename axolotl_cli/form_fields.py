"""The fields of a form, as a person at a terminal fills them in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import Any, Final

__all__ = ["BLANK", "FormField", "fields_of"]

BLANK: Final = object()
"""What a field is that was left out."""

_TYPES: Final = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"}
_FORMATS: Final = {"date": "date, YYYY-MM-DD", "date-time": "date and time, ISO 8601", "email": "email", "uri": "URI"}
_BOOLEANS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def label(self) -> str:
        """The name, what may be entered, and what an empty line stands for."""
        shown = f"{self.schema.get('title') or self.name} ({self._kind})"
        if "default" in self.schema:
            return f"{shown} [{self._written(self.schema['default'])}]"
        return shown if self.required else f"{shown} [nothing]"

    @property
    def description(self) -> str:
        """What is said about the field."""
        return str(self.schema.get("description", ""))

    def read(self, line: str) -> Any:
        """Make a value of what was entered.

        Raises:
            ValueError: if it is none; the text says what to enter.
        """
        text = line.strip()
        if not text:
            if "default" in self.schema:
                return self.schema["default"]
            if self.required:
                raise ValueError("something must be entered here")
            return BLANK
        value = self._value(text)
        for problem in _breaches(self.schema, value):
            raise ValueError(problem)
        return value

    @property
    def _choices(self) -> dict[str, str]:
        """The values to choose from, each with what it is called."""
        schema = self.schema.get("items", self.schema)
        pairs = schema.get("oneOf", schema.get("anyOf"))
        if pairs is not None:
            return {pair["const"]: pair["title"] for pair in pairs}
        values: Sequence[str] = schema.get("enum", ())
        return dict(zip(values, schema.get("enumNames", values), strict=True))

    @property
    def _kind(self) -> str:
        choices = [value if value == title else f"{value} = {title}" for value, title in self._choices.items()]
        if self.schema["type"] == "array":
            return f"any of {', '.join(choices)}; with commas between them"
        if choices:
            return ", ".join(choices)
        kind = _FORMATS.get(self.schema.get("format", ""), _TYPES[self.schema["type"]])
        return ", ".join([kind, *_limits(self.schema)])

    def _value(self, text: str) -> Any:
        if self.schema["type"] == "array":
            return [self._choice(part.strip()) for part in text.split(",")]
        if self._choices:
            return self._choice(text)
        return _READERS.get(self.schema.get("format", ""), _READERS[self.schema["type"]])(text)

    def _choice(self, text: str) -> str:
        for value, title in self._choices.items():
            if text.casefold() in (value.casefold(), title.casefold()):
                return value
        raise ValueError(f"{text!r} is none of {', '.join(self._choices)}")

    def _written(self, value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return (", ".join(value) if isinstance(value, list) else str(value)) or "nothing"


def fields_of(schema: Mapping[str, Any]) -> list[FormField]:
    """List the fields of a form."""
    required = schema.get("required", ())
    return [FormField(name, field, name in required) for name, field in schema["properties"].items()]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not isfinite(number):
        raise ValueError(f"{text!r} is no number")
    return number


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.casefold()]
    except KeyError:
        raise ValueError(f"{text!r} is neither yes nor no") from None


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"{text!r} is no date of the form YYYY-MM-DD") from None


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "string": str,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    for words, low, high in (("", "minimum", "maximum"), (" characters", "minLength", "maxLength")):
        if low in schema and high in schema:
            yield f"{schema[low]} to {schema[high]}{words}"
        elif low in schema:
            yield f"at least {schema[low]}{words}"
        elif high in schema:
            yield f"at most {schema[high]}{words}"


def _breaches(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    size = value if isinstance(value, int | float) else len(value)
    for limit in ("minimum", "minLength", "minItems"):
        if limit in schema and size < schema[limit]:
            yield f"too {'short' if limit == 'minLength' else 'little'}: at least {schema[limit]}"
    for limit in ("maximum", "maxLength", "maxItems"):
        if limit in schema and size > schema[limit]:
            yield f"too {'long' if limit == 'maxLength' else 'much'}: at most {schema[limit]}"
