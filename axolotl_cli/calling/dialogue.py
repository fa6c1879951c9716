"""Questions of a server, asked at the terminal."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any, Final

import typer

from axolotl_cli.text import escape_controls, one_line
from axolotl_core.errors import ConfigurationError
from axolotl_core.questions.question import Root
from axolotl_server.client.outcomes import ACCEPT, DECLINE, Answer, Inquiry
from axolotl_server.lifecycle.daemon_thread import run_in_daemon_thread

BLANK: Final = object()
"""The value of a field that was left empty."""

_TYPES: Final = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"}
_FORMATS: Final = {"date": "date, YYYY-MM-DD", "date-time": "date and time, ISO 8601", "email": "email", "uri": "URI"}
_BOOLEANS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def label(self) -> str:
        """The name, the accepted values, and the meaning of an empty line."""
        shown = f"{self.schema.get('title') or self.name} ({self._kind})"
        if "default" in self.schema:
            return f"{shown} [{self._format(self.schema['default'])}]"
        return shown if self.required else f"{shown} [optional]"

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))

    def read(self, line: str) -> Any:
        """Parse an entered line; raise `ValueError` with what to enter instead if it is invalid."""
        text = line.strip()
        if not text:
            if "default" in self.schema:
                return self.schema["default"]
            if self.required:
                raise ValueError("a value is required")
            return BLANK
        value = self._value(text)
        for problem in _violations(self.schema, value):
            raise ValueError(problem)
        return value

    @property
    def _choices(self) -> dict[str, str]:
        """The values to choose from, with their titles."""
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
            return f"any of {', '.join(choices)}; separated by commas"
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
        raise ValueError(f"{text!r} is not one of {', '.join(self._choices)}")

    def _format(self, value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return (", ".join(value) if isinstance(value, list) else str(value)) or "none"


def fields_of(schema: Mapping[str, Any]) -> list[FormField]:
    """List the fields of a form."""
    required = schema.get("required", ())
    return [FormField(name, field, name in required) for name, field in schema["properties"].items()]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not isfinite(number):
        raise ValueError(f"{text!r} is not a number")
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
        raise ValueError(f"{text!r} is not a date of the form YYYY-MM-DD") from None


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


_TOO_SMALL: Final = {"minimum": "small", "minLength": "short", "minItems": "few"}
_TOO_LARGE: Final = {"maximum": "large", "maxLength": "long", "maxItems": "many"}


def _violations(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    size = value if isinstance(value, int | float) else len(value)
    for limit in _TOO_SMALL:
        if limit in schema and size < schema[limit]:
            yield f"too {_TOO_SMALL[limit]}: at least {schema[limit]}"
    for limit in _TOO_LARGE:
        if limit in schema and size > schema[limit]:
            yield f"too {_TOO_LARGE[limit]}: at most {schema[limit]}"


_MAX_LINE_BYTES = 65536


class Dialogue:
    """Asks questions on stderr and reads the answers from the terminal, in the background."""

    def __init__(self) -> None:
        self._asked: dict[str, Mapping[str, Any]] = {}

    async def answer(self, inquiry: Inquiry) -> Answer:
        """Ask until there is an answer; Ctrl-D declines, which is an error for questions that need an answer."""
        if self._asked.get(inquiry.key) == inquiry.params:
            _print("The answer was not accepted. Try again.", fg="yellow")
        self._asked[inquiry.key] = inquiry.params
        try:
            match inquiry.method, inquiry.params.get("mode", "form"):
                case "elicitation/create", "url":
                    return await _open_page(inquiry)
                case "elicitation/create", _:
                    return await _fill_in(inquiry)
                case "sampling/createMessage", _:
                    return await _answer_as_model(inquiry)
            return await _ask_roots()
        except EOFError:
            _print("")
            if inquiry.method == "elicitation/create":
                return DECLINE
            raise ConfigurationError(f"The question {inquiry.key!r} was not answered") from None


async def _fill_in(inquiry: Inquiry) -> Mapping[str, Any]:
    _print(inquiry.message, bold=True)
    _print("Press Ctrl-D to decline.", dim=True)
    filled = {field.name: await _enter(field) for field in fields_of(inquiry.params["requestedSchema"])}
    content = {name: value for name, value in filled.items() if value is not BLANK}
    return {**ACCEPT, "content": content}


async def _enter(field: FormField) -> Any:
    if field.description:
        _print(f"  {one_line(field.description)}", dim=True)
    while True:
        line = await _read_line(f"  {one_line(field.label)}: ")
        try:
            return field.read(line)
        except ValueError as problem:
            _print(f"  {one_line(str(problem))}", fg="yellow")


async def _open_page(inquiry: Inquiry) -> Mapping[str, Any]:
    _print(inquiry.message, bold=True)
    url = str(inquiry.params["url"])
    if not url.lower().startswith(("http://", "https://")):  # opening others may run code, or read files
        _print(f"  The server wants {one_line(url)} opened, which is no web page: declined", fg="yellow")
        return DECLINE
    _print(f"  {one_line(url)}", fg="cyan")
    await _read_line("  Open this page and press Enter, or Ctrl-D to decline. ")
    return ACCEPT


async def _answer_as_model(inquiry: Inquiry) -> str:
    _print("The server asks a model:", bold=True)
    if "systemPrompt" in inquiry.params:
        _print(f"  system: {inquiry.params['systemPrompt']}")
    for message in inquiry.params["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [content]:
            _print(f"  {message['role']}: {block.get('text', '[' + str(block['type']) + ']')}")
    return await _read_line("  Answer as the model: ")


async def _ask_roots() -> list[Root]:
    here = Path.cwd()
    _print("Which directories may the server use?", bold=True)
    line = await _read_line(f"  Directories, separated by commas [{here}]: ")
    directories = [part.strip() for part in line.split(",") if part.strip()] or [str(here)]
    return [_root(directory) for directory in directories]


def _root(directory: str) -> Root:
    return Root(Path(directory).expanduser().absolute().as_uri())


def _print(text: str, **style: Any) -> None:
    typer.echo(typer.style(escape_controls(text), **style), err=True)


async def _read_line(prompt: str) -> str:
    """Read a line while the server goes on.

    The thread keeps neither the process alive nor the lock of standard input, so that Ctrl-C ends the command.
    """
    typer.echo(prompt, nl=False, err=True)
    line = await run_in_daemon_thread("axolotl-terminal", lambda: os.read(sys.stdin.fileno(), _MAX_LINE_BYTES))
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace").rstrip("\r\n")
