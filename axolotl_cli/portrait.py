"""A server on a page, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.json import JSON
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from axolotl_cli.render import console, number, seconds

__all__ = ["print_portrait"]


def print_portrait(report: Mapping[str, Any]) -> None:
    """Write what `axolotl inspect` found."""
    paper = console()
    _print_server(paper, report)
    for tool in report["tools"]:
        _print_tool(paper, tool)
    paper.print(f"\n{number(len(report['tools']), 'tool')}")


def _print_server(paper: Console, report: Mapping[str, Any]) -> None:
    server, settings = report["server"], report["settings"]
    limits = settings["limits"]
    paper.print(Text.assemble((server["name"], "bold"), " ", server["version"], "  ", (server["title"] or "", "dim")))
    facts = {
        "target": report["target"],
        "description": server["description"],
        "instructions": server["instructions"],
        "revisions": ", ".join(report["revisions"]),
        "http": f"{settings['http']['host']} port {settings['http']['port']} path {settings['http']['path']}",
        "limits": f"{seconds(limits['timeout_seconds'])} a call, {limits['max_inflight']} calls at once, "
        f"{limits['max_message_bytes']} bytes a message, {limits['threads']} threads",
    }
    paper.print(_facts((name, Text(value)) for name, value in facts.items() if value))


def _print_tool(paper: Console, tool: Mapping[str, Any]) -> None:
    paper.print()
    paper.print(Text.assemble((tool["name"], "bold cyan"), "  ", (tool["title"] or "", "dim")))
    facts: dict[str, RenderableType | None] = {
        "description": Text(tool["description"]) if tool["description"] else None,
        "tool set": Text(tool["toolset"]) if tool["toolset"] else None,
        "limits": Text(_limits(tool["limits"])),
        "layers": Text(" → ".join(layer.rpartition(".")[2] for layer in tool["layers"]) or "none"),
        "input": JSON.from_data(tool["input_schema"]),
        "output": JSON.from_data(tool["output_schema"]) if tool["output_schema"] else Text("content without a schema"),
    }
    paper.print(_facts((name, value) for name, value in facts.items() if value is not None))


def _limits(limits: Mapping[str, Any]) -> str:
    at_once = limits["max_concurrency"]
    parts = [
        seconds(limits["timeout_seconds"]),
        "any number at once" if at_once is None else f"{at_once} at once",
        f"in the {limits['execution']}" if limits["execution"] == "loop" else f"in a {limits['execution']}",
    ]
    return ", ".join([*parts, *(["arguments are coerced"] if limits["coerce_arguments"] else [])])


def _facts(facts: Iterator[tuple[str, RenderableType]] | Any) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in facts:
        grid.add_row(name, value)
    return Padding(Group(grid), (0, 0, 0, 2))
