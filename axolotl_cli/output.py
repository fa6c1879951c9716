"""Output of commands: tables, JSON, and the content of tools, prompts and resources."""

import json
import sys
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from axolotl_cli.text import escape_controls, escape_json, one_line

_WIDE = 10_000
"""The width of output that is not a terminal, so that no line is broken."""


def show(*parts: RenderableType) -> None:
    """Print for people; only a terminal gets colors, and line breaks that fit its width."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(*parts, sep="\n")
        return
    plain = Console(highlight=False, width=_WIDE)
    with plain.capture() as captured:
        plain.print(*parts, sep="\n")
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def plain(text: str, style: str = "") -> Text:
    """Make text for `show`; a terminal shows control sequences in it instead of obeying them."""
    return Text(escape_controls(text), style)


def print_json(value: Any) -> None:
    """Print JSON, with colors on a terminal; control characters are escaped in the way of JSON."""
    text = escape_json(json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False))
    console = Console()
    if console.is_terminal:
        console.print(JSONHighlighter()(text), soft_wrap=True)  # print_json would undo the escapes
    else:
        typer.echo(text)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Make a table with headings."""
    made = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    made.columns[0].no_wrap = True
    made.columns[0].style = "cyan"
    for column in made.columns[1:]:
        column.overflow = "fold"
    for row in rows:
        made.add_row(*map(plain, row))
    return made


def facts_grid(facts: Mapping[str, RenderableType]) -> Table:
    """Make a table of names and values."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    for name, value in facts.items():
        grid.add_row(name, value)
    return grid


def print_text(text: str, *, err: bool = False) -> None:
    """Print text of a server: unchanged, but without control sequences if a terminal would obey them."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    typer.echo(escape_controls(text) if is_terminal else text, err=err)


def text_of(block: Mapping[str, Any]) -> str:
    """Return the text of a content block, or its type if it has no text."""
    if block["type"] == "text":
        return str(block["text"])
    resource = block.get("resource", block)
    if "text" in resource:
        return str(resource["text"])
    kind, place = resource.get("mimeType", ""), resource.get("uri", "")
    return f"[{' '.join(part for part in (block['type'], kind, place) if part)}]"


def print_result(result: Mapping[str, Any]) -> None:
    """Print the result of a tool: its value as JSON, otherwise its content."""
    if "structuredContent" in result and not result.get("isError"):
        print_json(result["structuredContent"])
    else:
        for block in result["content"]:
            print_text(text_of(block), err=result.get("isError", False))


def print_messages(result: Mapping[str, Any]) -> None:
    """Print the messages of a prompt."""
    messages = result["messages"]
    for message in messages:
        if len(messages) > 1:
            typer.secho(f"[{one_line(message['role'])}]", bold=True)
        print_text(text_of(message["content"]))


def print_contents(result: Mapping[str, Any]) -> None:
    """Print the contents of a resource unchanged; on a terminal, end text with a line break and omit binary data."""
    contents, is_terminal = result["contents"], sys.stdout.isatty()
    for content in contents:
        if "text" in content:
            text = escape_controls(str(content["text"])) if is_terminal else str(content["text"])
            typer.echo(text, nl=not text.endswith("\n") and (is_terminal or content is not contents[-1]))
            continue
        data = b64decode(content["blob"])
        if is_terminal:
            kind = one_line(str(content.get("mimeType", "bytes")))
            typer.echo(f"[{kind}, {len(data)} bytes: redirect the output to save them]")
        else:
            typer.echo(data, nl=False)
