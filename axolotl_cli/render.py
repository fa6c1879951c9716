"""Output for people and for programs."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["print_json", "seconds", "show", "table"]

_WIDE = 10_000
"""The width of an output that is no terminal: programs that read lines want them whole."""


def show(*parts: RenderableType) -> None:
    """Write for people; what is no terminal gets neither colours nor line breaks to fit a width."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(*parts, sep="\n")
        return
    plain = Console(highlight=False, width=_WIDE)
    with plain.capture() as captured:
        plain.print(*parts, sep="\n")
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def print_json(value: Any) -> None:
    """Write for programs; in a terminal, with colours."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    console = Console()
    if console.is_terminal:
        console.print_json(text, ensure_ascii=False)
    else:
        typer.echo(text)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Lay out rows below their headings."""
    made = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    made.columns[0].no_wrap = True
    made.columns[0].style = "cyan"
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def seconds(duration: float) -> str:
    """Write a duration."""
    return f"{duration:g} s"
