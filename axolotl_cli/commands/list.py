"""`axolotl list` and `axolotl inspect`: the features of a server, in short and in full."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import typer

from axolotl_cli.calling.running_server import use_server
from axolotl_cli.options import AsJson, FileOptions, RemoteOptions, Target, ToolSets
from axolotl_cli.output import print_json, show, table
from axolotl_cli.principal import ActingPrincipal
from axolotl_cli.runtime import with_host
from axolotl_cli.target import resolve_target
from axolotl_cli.text import counted
from axolotl_cli.views.offer import Offer, counts, describe_for, describe_in_full, describe_server, print_inspection

_LISTING_SECONDS: Final = 60.0
"""How long reading the lists of a running server may take."""


def list_features(
    context: typer.Context,
    target: Target = None,
    *,
    server: RemoteOptions,
    principal: ActingPrincipal = None,
    toolset: ToolSets = None,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """List the tools, prompts, resources and skills of a container or a running server.

    With --as, only those that the principal may use. The exit code is 3 if a running server does not answer.
    """
    server.check(principal, _explicit(context, target))

    if server.url is not None:
        offer = use_server(server, describe_server, within_seconds=_LISTING_SECONDS)["offer"]
    else:
        offer = with_host(resolve_target(target, toolset, files=files), partial(describe_for, principal))
    if as_json:
        print_json({kind: [_summary(feature) for feature in features] for kind, features in offer.items()})
    else:
        _print_tables(offer)


def _explicit(context: typer.Context, target: str | None) -> str | None:
    """Return the target if the command line names one, not a variable."""
    source = context.get_parameter_source("target")
    return target if target != "-" and source is not None and source.name == "COMMANDLINE" else None


def _summary(feature: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: feature[key] for key in ("uri", "uri_template", "mime_type") if key in feature}
    if "arguments_schema" in feature:
        own["arguments"] = [
            {"name": name, "required": is_required} for name, is_required in _arguments(feature["arguments_schema"])
        ]
    if "frontmatter" in feature:
        own["files"] = _number_of_files(feature)
    common = {key: feature[key] for key in ("title", "description", "toolset") if key in feature}
    limits = {key: feature["limits"][key] for key in ("execution", "timeout_seconds") if "limits" in feature}
    return {"name": feature["name"], **own, **common, **limits}


def _arguments(schema: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """List the arguments of a prompt, each with whether it is required."""
    required = schema.get("required", ())
    return [(name, name in required) for name in schema.get("properties", {})]


def _print_tables(offer: Offer) -> None:
    columns = {
        "tools": ("Tool", "Description"),
        "prompts": ("Prompt", "Description", "Arguments"),
        "resources": ("Resource", "Description", "Type"),
        "templates": ("Template", "Description", "Type"),
        "skills": ("Skill", "Description", "Files"),
    }
    for kind, features in offer.items():
        if features:
            own = ["Tool set", "Runs in", "Timeout"] if "limits" in features[0] else []
            show(table([*columns[kind], *own], map(_row, features)), "")
    show(", ".join(counted(counts(offer))))


def _row(feature: Mapping[str, Any]) -> list[str]:
    limits = feature.get("limits")
    first = next(iter(feature["description"].strip().splitlines()), "")
    sentence, stop, _ = first.partition(". ")
    headline = sentence + stop.strip() or feature["title"] or ""
    if "arguments_schema" in feature:
        arguments = _arguments(feature["arguments_schema"])
        names = ", ".join(name if is_required else f"{name}?" for name, is_required in arguments)
        own = [feature["name"], headline, names or "–"]
    elif "frontmatter" in feature:
        own = [feature["uri"], headline, _number_of_files(feature)]
    elif "mime_type" in feature:
        uri = feature.get("uri") or feature["uri_template"]
        own = [uri, headline or feature["name"], feature["mime_type"] or "–"]
    else:
        own = [feature["name"], headline]
    if limits is None:
        return own
    return [*own, feature["toolset"] or "–", limits["execution"], f"{limits['timeout_seconds']:g} s"]


def _number_of_files(skill: Mapping[str, Any]) -> str:
    return "dynamic" if skill["resources"] == "dynamic" else str(len(skill["resources"]))


def inspect(
    context: typer.Context,
    target: Target = None,
    *,
    server: RemoteOptions,
    toolset: ToolSets = None,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Show a server in full: identity, settings, and all features with schemas, layers and limits."""
    server.check(_explicit(context, target))
    if server.url is not None:
        found = use_server(server, describe_server, within_seconds=_LISTING_SECONDS)
        report = {**found["description"], **found["offer"]}
    else:
        chosen = resolve_target(target, toolset, files=files)
        report = {"target": chosen.name, **with_host(chosen, describe_in_full)}
    if as_json:
        print_json(report)
    else:
        print_inspection(report)
