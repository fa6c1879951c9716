"""Descriptions of the features that a server offers, for `list` and `inspect`."""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any, Final, TypeAlias

from msgspec.structs import asdict
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from axolotl_cli.output import facts_grid, plain, show
from axolotl_cli.text import counted
from axolotl_cli.views.schemas import outline
from axolotl_core.content import APP_MIME_TYPE, APP_SCHEME, app_link
from axolotl_core.layers import type_of_layer
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import REVISIONS
from axolotl_server.calls.binding import Binding
from axolotl_server.client.client import Client
from axolotl_server.host import ServerHost

Offer: TypeAlias = Mapping[str, list[dict[str, Any]]]
"""Descriptions of features under these kinds."""
_KINDS: Final = ("tools", "prompts", "resources", "templates", "skills")


def describe(host: ServerHost) -> Offer:
    """Describe everything that a client can ask for."""
    sets, found = host.roles.set_names, host.bindings()
    return {kind: [_described(kind, one, sets) for one in found.get(kind, ())] for kind in _KINDS}


def _described(kind: str, binding: Binding[Any], sets: Mapping[int, str | None]) -> dict[str, Any]:
    spec, feature = binding.spec, binding.spec.feature
    described = {
        "name": feature.name,
        "title": feature.title,
        "description": feature.description,
        "toolset": sets.get(id(feature)),
        "limits": asdict(spec.limits),
        "layers": [f"{one.__module__}.{one.__qualname__}" for one in map(type_of_layer, binding.layers)],
    }
    if kind == "tools":
        app = app_link(feature.app)
        page = None if app is None else app.resource_uri
        return {**described, "input_schema": spec.input_schema, "output_schema": spec.output_schema, "app": page}
    if kind == "prompts":
        return {**described, "arguments_schema": feature.arguments_schema}
    if kind == "skills":
        return {**described, "uri": spec.name, **{name: feature.entry[name] for name in ("frontmatter", "resources")}}
    mime_type = feature.mime_type or (APP_MIME_TYPE if spec.name.startswith(APP_SCHEME) else None)
    if kind == "resources":
        return {**described, "uri": spec.name, "mime_type": mime_type, "size": feature.size}
    schema = feature.arguments_schema
    return {**described, "uri_template": spec.name, "mime_type": mime_type, "variables_schema": schema}


async def describe_for(principal: Principal | None, host: ServerHost) -> Offer:
    """Describe what a principal may use; without one, everything."""
    authorization = host.assembly.tools.authorization
    if authorization is None or principal is None:
        return describe(host)
    visible, found = {}, host.bindings()
    added = {one.field: await one.visible_bindings(principal) for one in host.assembly.added_catalogues}
    for kind, features in describe(host).items():
        if kind in added:
            shown = set(map(id, added[kind]))
            allowed = [id(binding) in shown for binding in found[kind]]
        else:
            allowed = list(await authorization.allowed(principal, [one.spec for one in found.get(kind, ())]))
        visible[kind] = list(compress(features, allowed))
    return visible


async def describe_in_full(host: ServerHost) -> dict[str, Any]:
    """Describe everything that a client can ask for, and the server itself."""
    settings = host.settings.model_dump(mode="json")
    return {
        "server": settings.pop("server"),
        "revisions": [revision.name for revision in REVISIONS],
        "settings": settings,
        "extensions": {extension.identifier: dict(extension.settings) for extension in host.roles.extensions},
        **describe(host),
    }


async def describe_server(client: Client) -> dict[str, Any]:
    """Describe a running server, and everything that it lists for this client."""
    described = await client.describe()
    listed = await client.list_all()
    return {
        "description": {
            "server": {key: getattr(described, key) for key in ("name", "version", "title", "instructions")},
            "revision": described.revision,
            "capabilities": dict(described.capabilities),
        },
        "offer": {
            **{kind: [_listed(kind, one) for one in listed[kind]] for kind in listed if kind != "skills"},
            "skills": [],  # clients find them as resources
        },
    }


def _listed(kind: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": definition["name"],
        "title": definition.get("title"),
        "description": definition.get("description") or "",
    }
    if kind == "tools":
        output = definition.get("outputSchema")
        schemas = {
            "input_schema": definition.get("inputSchema", {}),
            "output_schema": output if isinstance(output, dict) else None,
        }
        return {**described, **schemas, "app": None}
    if kind == "prompts":
        arguments = definition.get("arguments") or []  # which are listed one by one
        texts = {one["name"]: {"type": "string", "description": one.get("description") or ""} for one in arguments}
        required = [one["name"] for one in arguments if one.get("required")]
        return {**described, "arguments_schema": {"type": "object", "properties": texts, "required": required}}
    if kind == "resources":
        return {
            **described,
            "uri": definition["uri"],
            "mime_type": definition.get("mimeType"),
            "size": definition.get("size"),
        }
    return {**described, "uri_template": definition["uriTemplate"], "mime_type": definition.get("mimeType")}


def counts(offer: Mapping[str, Any]) -> dict[str, int]:
    """Count the features of each kind."""
    return {kind.removesuffix("s"): len(offer[kind]) for kind in _KINDS}


def print_inspection(report: Mapping[str, Any]) -> None:
    """Print the report of `axolotl inspect`."""
    server = report["server"]
    if "settings" in report:
        http, limits = report["settings"]["http"], report["settings"]["limits"]
        facts = {
            "target": report["target"],
            "description": server["description"],
            "instructions": server["instructions"],
            "revisions": ", ".join(report["revisions"]),
            "extensions": ", ".join(report["extensions"]),
            "http": f"{http['host']}, port {http['port']}, path {http['path']}",
            "limits": f"{limits['timeout_seconds']:g} s per call, {limits['max_inflight']} concurrent calls, "
            f"{limits['threads']} threads, {limits['max_message_bytes']} bytes per message",
        }
    else:
        facts = {
            "instructions": server["instructions"],
            "revision": report["revision"],
            "capabilities": ", ".join(report["capabilities"]),
        }
    heading = plain(f"{server['name']} {server['version']}", "bold") + plain(f"  {server['title'] or ''}")
    show(heading, _facts({name: plain(value) for name, value in facts.items() if value}))
    for title, described in _features(report):
        show("", title, _facts(described))
    show("", f"{', '.join(counted(counts(report)))}; --json shows the complete schemas")


def _features(report: Mapping[str, Any]) -> Iterator[tuple[RenderableType, Mapping[str, RenderableType]]]:
    for tool in report["tools"]:
        output = tool["output_schema"]
        page: dict[str, RenderableType] = {"page": plain(tool["app"])} if tool["app"] else {}
        schemas = {
            "input": _schema(tool["input_schema"]),
            "output": _schema(output) if output else plain("content without a schema"),
        }
        yield _heading(tool["name"], tool), {**_common_facts(tool), **page, **schemas}
    for prompt in report["prompts"]:
        arguments = {"arguments": _schema(prompt["arguments_schema"])}
        yield _heading(prompt["name"], prompt, "prompt"), {**_common_facts(prompt), **arguments}
    for resource in report["resources"]:
        size = f", {resource['size']} bytes" if resource["size"] is not None else ""
        yield _heading(resource["uri"], resource, "resource"), _readable(resource, size)
    for template in report["templates"]:
        schema = template.get("variables_schema")
        variables = {} if schema is None else {"variables": _schema(schema)}
        yield _heading(template["uri_template"], template, "template"), {**_readable(template), **variables}
    for skill in report["skills"]:
        yield _heading(skill["uri"], skill, "skill"), {**_common_facts(skill), "files": _files(skill)}


def _files(skill: Mapping[str, Any]) -> RenderableType:
    if skill["resources"] == "dynamic":
        return plain("dynamic")
    grid = Table.grid(padding=(0, 2))
    for file in skill["resources"]:
        grid.add_row(
            plain(file["uri"], "cyan"), plain(f"{file['size']} bytes"), plain(file["digest"][:19] + "…", "dim")
        )
    return grid


def _heading(name: str, feature: Mapping[str, Any], kind: str = "") -> Text:
    return Text("  ").join(
        [
            plain(name, "bold cyan"),
            *map(plain, filter(None, [feature["title"]])),
            *([plain(kind, "dim")] if kind else []),
        ]
    )


def _readable(feature: Mapping[str, Any], size: str = "") -> dict[str, RenderableType]:
    described = {"name": plain(feature["name"]), **_common_facts(feature)}
    return {**described, "type": plain((feature["mime_type"] or "known when it is read") + size)}


def _common_facts(feature: Mapping[str, Any]) -> dict[str, RenderableType]:
    description = {"description": plain(feature["description"] or "–")}
    if "limits" not in feature:
        return {**description}
    layers = [layer.rpartition(".")[2] for layer in feature["layers"]]
    return {
        **description,
        "tool set": plain(feature["toolset"] or "–"),
        "limits": plain(_limits(feature["limits"], coercible="input_schema" in feature)),
        "layers": plain(" → ".join(layers) or "–"),
    }


def _limits(limits: Mapping[str, Any], *, coercible: bool) -> str:
    concurrency, execution = limits["max_concurrency"], limits["execution"]
    parts = [
        f"{limits['timeout_seconds']:g} s per call",
        "unlimited concurrency" if concurrency is None else f"{concurrency} concurrent",
        "on the event loop" if execution == "loop" else f"in a {execution}",
    ]
    return ", ".join([*parts, "arguments are coerced"] if coercible and limits["coerce_arguments"] else parts)


def _schema(schema: Mapping[str, Any]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    try:
        lines = list(outline(schema))
    except (AttributeError, KeyError, TypeError):  # a server elsewhere may list anything
        return plain("not a valid schema")
    is_described = any(description for _, _, description in lines)  # an empty column would cut off the one before it
    for name, kind, description in lines:
        grid.add_row(plain(name), plain(kind), *([plain(description, "dim")] if is_described else []))
    return grid if lines else plain("none")


def _facts(facts: Mapping[str, RenderableType]) -> RenderableType:
    return Padding(facts_grid(facts), (0, 0, 0, 2), expand=False)
