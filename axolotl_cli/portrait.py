"""A server on a page, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from axolotl_cli.counts import counted
from axolotl_cli.outline import outline
from axolotl_cli.render import seconds, show

__all__ = ["print_portrait"]


def print_portrait(report: Mapping[str, Any]) -> None:
    """Write what `axolotl inspect` found."""
    show(*_server(report))
    for heading, facts in _features(report):
        show("", heading, _facts(facts))
    counts = {kind: len(report[f"{kind}s"]) for kind in ("tool", "prompt", "resource", "template")}
    show("", f"{', '.join(counted(counts))}; --json shows the schemas whole")


def _server(report: Mapping[str, Any]) -> tuple[RenderableType, RenderableType]:
    server, http, limits = report["server"], report["settings"]["http"], report["settings"]["limits"]
    facts = {
        "target": report["target"],
        "description": server["description"],
        "instructions": server["instructions"],
        "revisions": ", ".join(report["revisions"]),
        "extensions": ", ".join(report["extensions"]),
        "http": f"{http['host']}, port {http['port']}, path {http['path']}",
        "limits": f"{seconds(limits['timeout_seconds'])} a call, {limits['max_inflight']} calls at once, "
        f"{limits['threads']} threads, {limits['max_message_bytes']} bytes a message",
    }
    heading = Text.assemble((f"{server['name']} {server['version']}", "bold"), f"  {server['title'] or ''}")
    return heading, _facts({name: Text(value) for name, value in facts.items() if value})


def _features(report: Mapping[str, Any]) -> Iterator[tuple[RenderableType, Mapping[str, RenderableType]]]:
    for tool in report["tools"]:
        output = tool["output_schema"]
        page: dict[str, RenderableType] = {"page": Text(tool["app"])} if tool["app"] else {}
        schemas = {
            "input": _schema(tool["input_schema"]),
            "output": _schema(output) if output else Text("content, without a schema"),
        }
        yield _heading(tool["name"], tool), {**_common(tool), **page, **schemas}
    for prompt in report["prompts"]:
        arguments = {"arguments": _schema(prompt["arguments_schema"])}
        yield _heading(prompt["name"], prompt, "prompt"), {**_common(prompt), **arguments}
    for resource in report["resources"]:
        size = f", {resource['size']} bytes" if resource["size"] is not None else ""
        yield _heading(resource["uri"], resource, "resource"), _readable(resource, size)
    for template in report["templates"]:
        variables = {"variables": _schema(template["variables_schema"])}
        yield _heading(template["uri_template"], template, "template"), {**_readable(template), **variables}


def _heading(name: str, feature: Mapping[str, Any], kind: str = "") -> Text:
    return Text("  ").join(
        [Text(name, "bold cyan"), *map(Text, filter(None, [feature["title"]])), *([Text(kind, "dim")] if kind else [])]
    )


def _readable(feature: Mapping[str, Any], size: str = "") -> dict[str, RenderableType]:
    described = {"name": Text(feature["name"]), **_common(feature)}
    return {**described, "type": Text((feature["mime_type"] or "said when it is read") + size)}


def _common(feature: Mapping[str, Any]) -> dict[str, RenderableType]:
    layers = [layer.rpartition(".")[2] for layer in feature["layers"]]
    return {
        "description": Text(feature["description"] or "–"),
        "tool set": Text(feature["toolset"] or "–"),
        "limits": Text(_limits(feature["limits"], coercible="input_schema" in feature)),
        "layers": Text(" → ".join(layers) or "–"),
    }


def _limits(limits: Mapping[str, Any], *, coercible: bool) -> str:
    at_once, execution = limits["max_concurrency"], limits["execution"]
    parts = [
        f"{seconds(limits['timeout_seconds'])} a call",
        "any number at once" if at_once is None else f"{at_once} at once",
        "on the event loop" if execution == "loop" else f"in a {execution}",
    ]
    return ", ".join([*parts, "arguments are coerced"] if coercible and limits["coerce_arguments"] else parts)


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
