"""Questions of a server, asked at the terminal."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Final

import typer

from axolotl_cli.text import escape_controls, one_line
from axolotl_core.errors import ConfigurationError
from axolotl_core.questions.question import Root
from axolotl_server.client.replies import ACCEPT, DECLINE, Answer, Question
from axolotl_server.execution.threads import run_in_daemon_thread

_KINDS: Final = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"}
_MAX_LINE_BYTES = 65536


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "integer": int,
    "number": _number,
    "boolean": {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}.__getitem__,
}


def _label(name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    """Show the name of a field, the accepted values, and the meaning of an empty line."""
    choices = [value if value == title else f"{value} = {title}" for value, title in _choices(schema).items()]
    kind = ", ".join(choices) or schema.get("format") or _KINDS[schema["type"]]
    several = "any of " if schema["type"] == "array" else ""
    meaning = "" if is_required else " [optional]"
    if "default" in schema:
        meaning = f" [{json.dumps(schema['default'], ensure_ascii=False)}]"
    return f"{schema.get('title') or name} ({several}{kind}){meaning}"


def _choices(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the values to choose from, with their titles."""
    schema = schema.get("items", schema)
    pairs = schema.get("oneOf", schema.get("anyOf"))
    if pairs is not None:
        return {pair["const"]: pair["title"] for pair in pairs}
    values: Sequence[str] = schema.get("enum", ())
    return dict(zip(values, schema.get("enumNames", values), strict=True))


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """Convert an entered line; the server refuses what it does not accept, and asks again."""
    if schema["type"] == "array":
        return [_chosen(schema, part.strip()) for part in text.split(",")]
    try:
        return _READERS.get(schema["type"], partial(_chosen, schema))(text)
    except (KeyError, ValueError):
        return text


def _chosen(schema: Mapping[str, Any], text: str) -> str:
    """Return the value that an entered value or title means."""
    names = {name.casefold(): value for value, title in _choices(schema).items() for name in (title, value)}
    return names.get(text.casefold(), text)


class Dialogue:
    """Asks questions on stderr and reads the answers from the terminal, in the background."""

    def __init__(self) -> None:
        self._asked: dict[str, Mapping[str, Any]] = {}

    async def answer(self, question: Question) -> Answer:
        """Ask until there is an answer; Ctrl-D declines, which is an error for questions that need an answer."""
        if self._asked.get(question.key) == question.params:
            _print("The answer was not accepted. Try again.", fg="yellow")
        self._asked[question.key] = question.params
        try:
            match question.method, question.params.get("mode", "form"):
                case "elicitation/create", "url":
                    return await _open_page(question)
                case "elicitation/create", _:
                    return await _fill_in(question)
                case "sampling/createMessage", _:
                    return await _answer_as_model(question)
            here = Path.cwd()
            _print("Which directories may the server use?", bold=True)
            line = await _read_line(f"  Directories, separated by commas [{here}]: ")
            directories = [part.strip() for part in line.split(",") if part.strip()] or [str(here)]
            return [_root(directory) for directory in directories]
        except EOFError:
            _print("")
            if question.method == "elicitation/create":
                return DECLINE
            raise ConfigurationError(f"The question {question.key!r} was not answered") from None


async def _fill_in(question: Question) -> Mapping[str, Any]:
    _print(question.message, bold=True)
    _print("Press Ctrl-D to decline.", dim=True)
    form, content = question.params["requestedSchema"], {}
    for name, schema in form["properties"].items():
        if schema.get("description"):
            _print(f"  {one_line(schema['description'])}", dim=True)
        label = _label(name, schema, is_required=name in form.get("required", ()))
        text = (await _read_line(f"  {one_line(label)}: ")).strip()
        if text:
            content[name] = _value(schema, text)
        elif "default" in schema:
            content[name] = schema["default"]
    return {**ACCEPT, "content": content}


async def _open_page(question: Question) -> Mapping[str, Any]:
    _print(question.message, bold=True)
    url = str(question.params["url"])
    if not url.lower().startswith(("http://", "https://")):  # opening others may run code, or read files
        _print(f"  The server wants {one_line(url)} opened, which is not a web page: declined", fg="yellow")
        return DECLINE
    _print(f"  {one_line(url)}", fg="cyan")
    await _read_line("  Open this page and press Enter, or Ctrl-D to decline. ")
    return ACCEPT


async def _answer_as_model(question: Question) -> str:
    _print("The server asks a model:", bold=True)
    if "systemPrompt" in question.params:
        _print(f"  system: {question.params['systemPrompt']}")
    for message in question.params["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [content]:
            _print(f"  {message['role']}: {block.get('text', '[' + str(block['type']) + ']')}")
    return await _read_line("  Answer as the model: ")


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
