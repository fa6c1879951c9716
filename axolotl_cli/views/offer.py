"""A server on a page, for people."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from axolotl_cli.output import seconds, show
from axolotl_cli.text import counted
from axolotl_cli.views.schemas import outline
from axolotl_core.content import APP_MIME_TYPE, APP_SCHEME, app_link
from axolotl_core.features.spec import Limits
from axolotl_core.registry import AnyResource
from axolotl_core.schema import JsonSchema
from axolotl_server.calls.binding import Binding
from axolotl_server.host import ServerHost
from axolotl_server.hosting.roles import FeatureSet


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """What can be said of every feature of a started server."""

    name: str
    title: str | None
    description: str
    toolset: str | None
    limits: Limits
    layers: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The first sentence of the description, else the title."""
        first = next(iter(self.description.strip().splitlines()), "")
        sentence, stop, _ = first.partition(". ")
        return sentence + stop.strip() or self.title or ""


@dataclass(frozen=True, slots=True)
class ToolDescription(FeatureDescription):
    """A tool."""

    input_schema: JsonSchema
    output_schema: JsonSchema | None
    app: str | None
    """The page that shows its results."""


@dataclass(frozen=True, slots=True)
class PromptDescription(FeatureDescription):
    """A prompt."""

    arguments_schema: JsonSchema

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments; those that may be left out have a question mark."""
        required = self.arguments_schema.get("required", ())
        names = self.arguments_schema.get("properties", {})
        return [name if name in required else f"{name}?" for name in names]


@dataclass(frozen=True, slots=True)
class ResourceDescription(FeatureDescription):
    """A resource with a fixed URI."""

    uri: str
    mime_type: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class TemplateDescription(FeatureDescription):
    """A template of resources."""

    uri_template: str
    mime_type: str | None
    variables_schema: JsonSchema


@dataclass(frozen=True, slots=True)
class Offer:
    """Everything that a server offers, in its order."""

    tools: tuple[ToolDescription, ...]
    prompts: tuple[PromptDescription, ...]
    resources: tuple[ResourceDescription, ...]
    templates: tuple[TemplateDescription, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How much there is of each kind."""
        kinds = {"tool": self.tools, "prompt": self.prompts, "resource": self.resources, "template": self.templates}
        return {kind: len(features) for kind, features in kinds.items()}


def describe(host: ServerHost) -> Offer:
    """Describe everything that a client can ask for."""
    tools, prompts = _sets(host.roles.toolsets), _sets(host.roles.promptsets)
    resources = _sets(host.roles.resourcesets)
    return Offer(
        tuple(_tool(binding, tools) for binding in host.catalogue.bindings()),
        tuple(_prompt(binding, prompts) for binding in host.prompts.bindings()),
        tuple(_resource(binding, resources) for binding in host.resources.bindings()),
        tuple(_template(binding, resources) for binding in host.templates.bindings()),
    )


def _mime_type(resource: AnyResource, uri: str) -> str | None:
    return resource.mime_type or (APP_MIME_TYPE if uri.startswith(APP_SCHEME) else None)


def _sets(sets: Iterable[FeatureSet]) -> dict[int, str | None]:
    return {id(item): one.name for one in sets for item in one.items}


def _tool(binding: Any, toolsets: dict[int, str | None]) -> ToolDescription:
    spec = binding.spec
    app = app_link(spec.tool.app)
    page = None if app is None else app.resource_uri
    return ToolDescription(*_common(binding, toolsets), spec.input_schema, spec.output_schema, page)


def _prompt(binding: Any, sets: dict[int, str | None]) -> PromptDescription:
    return PromptDescription(*_common(binding, sets), binding.spec.feature.arguments_schema)


def _resource(binding: Any, sets: dict[int, str | None]) -> ResourceDescription:
    resource, uri = binding.spec.feature, binding.spec.name
    return ResourceDescription(*_common(binding, sets), uri, _mime_type(resource, uri), resource.size)


def _template(binding: Any, sets: dict[int, str | None]) -> TemplateDescription:
    template, uri = binding.spec.feature, binding.spec.name
    return TemplateDescription(*_common(binding, sets), uri, _mime_type(template, uri), template.arguments_schema)


def _common(
    binding: Binding[Any], sets: dict[int, str | None]
) -> tuple[str, str | None, str, str | None, Limits, tuple[str, ...]]:
    spec, feature = binding.spec, binding.spec.feature
    layers = tuple(f"{type(layer).__module__}.{type(layer).__qualname__}" for layer in binding.layers)
    return feature.name, feature.title, feature.description, sets.get(id(feature)), spec.limits, layers


def print_inspection(report: Mapping[str, Any]) -> None:
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
        yield _heading(tool["name"], tool), {**_common_facts(tool), **page, **schemas}
    for prompt in report["prompts"]:
        arguments = {"arguments": _schema(prompt["arguments_schema"])}
        yield _heading(prompt["name"], prompt, "prompt"), {**_common_facts(prompt), **arguments}
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
    described = {"name": Text(feature["name"]), **_common_facts(feature)}
    return {**described, "type": Text((feature["mime_type"] or "said when it is read") + size)}


def _common_facts(feature: Mapping[str, Any]) -> dict[str, RenderableType]:
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
