"""A server on a page, for people."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from axolotl_cli.outline import outline
from axolotl_cli.render import number, seconds, show

__all__ = ["print_portrait"]


def print_portrait(report: Mapping[str, Any]) -> None:
    """Write what `axolotl inspect` found."""
    show(*_server(report))
    for tool in report["tools"]:
        show("", *_tool(tool))
    show("", f"{number(len(report['tools']), 'tool')}; --json shows the schemas whole")


def _server(report: Mapping[str, Any]) -> tuple[RenderableType, RenderableType]:
    server, http, limits = report["server"], report["settings"]["http"], report["settings"]["limits"]
    facts = {
        "target": report["target"],
        "description": server["description"],
        "instructions": server["instructions"],
        "revisions": ", ".join(report["revisions"]),
        "http": f"{http['host']}, port {http['port']}, path {http['path']}",
        "limits": f"{seconds(limits['timeout_seconds'])} a call, {limits['max_inflight']} calls at once, "
        f"{limits['threads']} threads, {limits['max_message_bytes']} bytes a message",
    }
    heading = Text.assemble((f"{server['name']} {server['version']}", "bold"), f"  {server['title'] or ''}")
    return heading, _facts({name: Text(value) for name, value in facts.items() if value})


def _tool(tool: Mapping[str, Any]) -> tuple[RenderableType, RenderableType]:
    layers = [layer.rpartition(".")[2] for layer in tool["layers"]]
    output = tool["output_schema"]
    facts: dict[str, RenderableType] = {
        "description": Text(tool["description"] or "–"),
        "tool set": Text(tool["toolset"] or "–"),
        "limits": Text(_limits(tool["limits"])),
        "layers": Text(" → ".join(layers) or "–"),
        "input": _schema(tool["input_schema"]),
        "output": _schema(output) if output else Text("content, without a schema"),
    }
    return Text.assemble((tool["name"], "bold cyan"), f"  {tool['title'] or ''}"), _facts(facts)


def _limits(limits: Mapping[str, Any]) -> str:
    at_once, execution = limits["max_concurrency"], limits["execution"]
    parts = [
        f"{seconds(limits['timeout_seconds'])} a call",
        "any number at once" if at_once is None else f"{at_once} at once",
        "on the event loop" if execution == "loop" else f"in a {execution}",
    ]
    return ", ".join([*parts, "arguments are coerced"] if limits["coerce_arguments"] else parts)


def _schema(schema: Mapping[str, Any]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    for name, kind, description in outline(schema):
        grid.add_row(Text(name), Text(kind), Text(description, "dim"))
    return grid if grid.row_count else Text("nothing")


def _facts(facts: Mapping[str, RenderableType]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    for name, value in facts.items():
        grid.add_row(name, value)
    return Padding(grid, (0, 0, 0, 2), expand=False)
