"""Asking the person at the terminal what a server wants to know."""

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from axolotl_cli.form_fields import BLANK, FormField, fields_of
from axolotl_cli.lines import escape_controls, one_line
from axolotl_core.errors import ConfigurationError
from axolotl_core.roots import Root
from axolotl_server.client import ACCEPT, DECLINE, Answer, Inquiry

__all__ = ["Dialogue"]

_LONGEST_LINE = 65536


class Dialogue:
    """Puts questions on the error stream and reads answers from the terminal, in the background."""

    def __init__(self) -> None:
        self._asked: dict[str, Mapping[str, Any]] = {}

    async def answer(self, inquiry: Inquiry) -> Answer:
        """Ask until there is an answer; the end of the input, Ctrl-D, declines.

        Raises:
            ConfigurationError: if a question that cannot be declined is not answered.
        """
        if self._asked.get(inquiry.key) == inquiry.params:
            _say("This was not accepted; once more.", fg="yellow")
        self._asked[inquiry.key] = inquiry.params
        try:
            match inquiry.method, inquiry.params.get("mode", "form"):
                case "elicitation/create", "url":
                    return await _open_page(inquiry)
                case "elicitation/create", _:
                    return await _fill_in(inquiry)
                case "sampling/createMessage", _:
                    return await _speak_as_model(inquiry)
            return await _name_roots()
        except EOFError:
            _say("")
            if inquiry.method == "elicitation/create":
                return DECLINE
            raise ConfigurationError(f"The question {inquiry.key!r} was not answered") from None


async def _fill_in(inquiry: Inquiry) -> Mapping[str, Any]:
    _say(f"{inquiry.message}", bold=True)
    _say("Ctrl-D declines to answer.", dim=True)
    filled = {field.name: await _enter(field) for field in fields_of(inquiry.params["requestedSchema"])}
    content = {name: value for name, value in filled.items() if value is not BLANK}
    return {**ACCEPT, "content": content}


async def _enter(field: FormField) -> Any:
    if field.description:
        _say(f"  {one_line(field.description)}", dim=True)
    while True:
        line = await _read_line(f"  {one_line(field.label)}: ")
        try:
            return field.read(line)
        except ValueError as problem:
            _say(f"  {one_line(str(problem))}", fg="yellow")


async def _open_page(inquiry: Inquiry) -> Mapping[str, Any]:
    _say(inquiry.message, bold=True)
    _say(f"  {one_line(str(inquiry.params['url']))}", fg="cyan")
    await _read_line("  Open this page and press Enter; Ctrl-D declines. ")
    return ACCEPT


async def _speak_as_model(inquiry: Inquiry) -> str:
    _say("A model is asked:", bold=True)
    if "systemPrompt" in inquiry.params:
        _say(f"  system: {inquiry.params['systemPrompt']}")
    for message in inquiry.params["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [content]:
            _say(f"  {message['role']}: {block.get('text', '[' + str(block['type']) + ']')}")
    return await _read_line("  Answer in its place: ")


async def _name_roots() -> list[Root]:
    here = Path.cwd()
    _say("Which directories do you work in?", bold=True)
    line = await _read_line(f"  directories (with commas between them) [{here}]: ")
    places = [part.strip() for part in line.split(",") if part.strip()] or [str(here)]
    return list(map(_root, places))


def _root(place: str) -> Root:
    return Root(Path(place).expanduser().absolute().as_uri())


def _say(text: str, **style: Any) -> None:
    typer.echo(typer.style(escape_controls(text), **style), err=True)


async def _read_line(prompt: str) -> str:
    """Read a line while the server goes on.

    The thread is none that the process waits for at its end, and takes no lock of the standard input, so that Ctrl-C
    ends the command whatever is being asked.
    """
    typer.echo(prompt, nl=False, err=True)
    loop = asyncio.get_running_loop()
    entered: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        line = os.read(sys.stdin.fileno(), _LONGEST_LINE)
        loop.call_soon_threadsafe(_settle, entered, line)

    threading.Thread(target=read, name="axolotl-terminal", daemon=True).start()
    line = await entered
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace").rstrip("\r\n")


def _settle(entered: asyncio.Future[bytes], line: bytes) -> None:
    if not entered.done():
        entered.set_result(line)
