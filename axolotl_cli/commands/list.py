"""`axolotl inspect`: everything that holds for a server, as it would start now."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from axolotl_cli.options import AsJson, EnvFile, Target, ToolSets

if TYPE_CHECKING:
    from axolotl_cli.views.offer import FeatureDescription, Offer, ResourceDescription, TemplateDescription
    from axolotl_server.host import ServerHost


def list_offer(
    target: Target = None, toolset: ToolSets = None, env_file: EnvFile = None, as_json: AsJson = False
) -> None:
    """List the tools, prompts and resources of a container."""
    from axolotl_cli.output import print_json
    from axolotl_cli.runtime import with_host
    from axolotl_cli.target import resolve_target

    offer = with_host(resolve_target(target, toolset, env_file=env_file), _describe)
    if as_json:
        print_json(_summaries(offer))
    else:
        _print_tables(offer)


async def _describe(host: "ServerHost") -> "Offer":
    from axolotl_cli.views.offer import describe

    return describe(host)


def _summaries(offer: "Offer") -> dict[str, list[dict[str, Any]]]:
    return {
        "tools": [_summary(tool) for tool in offer.tools],
        "prompts": [_summary(prompt, {"arguments": _arguments(prompt.arguments_schema)}) for prompt in offer.prompts],
        "resources": [_summary(one, {"uri": one.uri, "mime_type": one.mime_type}) for one in offer.resources],
        "templates": [
            _summary(one, {"uri_template": one.uri_template, "mime_type": one.mime_type}) for one in offer.templates
        ],
    }


def _summary(feature: "FeatureDescription", more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "name": feature.name,
        **(more or {}),
        "title": feature.title,
        "description": feature.description,
        "toolset": feature.toolset,
        "execution": feature.limits.execution,
        "timeout_seconds": feature.limits.timeout_seconds,
    }


def _arguments(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [{"name": name, "required": name in required} for name in schema.get("properties", {})]


def _print_tables(offer: "Offer") -> None:
    from axolotl_cli.output import show, table
    from axolotl_cli.text import counted

    ending = ("Tool set", "Runs in", "Timeout")
    sections: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = [
        (("Tool", "Description", *ending), [(one.name, one.headline, *_ending(one)) for one in offer.tools]),
        (
            ("Prompt", "Description", "Arguments", *ending),
            [(one.name, one.headline, ", ".join(one.arguments) or "–", *_ending(one)) for one in offer.prompts],
        ),
        (("Resource", "Description", "Type", *ending), [(one.uri, *_readable(one)) for one in offer.resources]),
        (
            ("Template", "Description", "Type", *ending),
            [(one.uri_template, *_readable(one)) for one in offer.templates],
        ),
    ]
    for columns, rows in sections:
        if rows:
            show(table(columns, rows), "")
    show(", ".join(counted(offer.counts)))


def _readable(one: "ResourceDescription | TemplateDescription") -> tuple[str, ...]:
    return (one.headline or one.name, one.mime_type or "–", *_ending(one))


def _ending(feature: "FeatureDescription") -> tuple[str, str, str]:
    from axolotl_cli.output import seconds

    return feature.toolset or "–", feature.limits.execution, seconds(feature.limits.timeout_seconds)


def inspect(target: Target = None, toolset: ToolSets = None, env_file: EnvFile = None, as_json: AsJson = False) -> None:
    """Show a server as it would start: identity, settings, and all it offers with schemas, layers and limits."""
    from axolotl_cli.runtime import with_host
    from axolotl_cli.target import resolve_target

    choice = resolve_target(target, toolset, env_file=env_file)
    report = {"target": choice.target, **with_host(choice, _inspect)}
    if as_json:
        from axolotl_cli.output import print_json

        print_json(report)
    else:
        from axolotl_cli.views.offer import print_inspection

        print_inspection(report)


async def _inspect(host: "ServerHost") -> dict[str, Any]:
    from axolotl_cli.views.offer import describe
    from axolotl_core.protocol.versions import REVISIONS

    settings = host.settings.model_dump(mode="json")
    return {
        "server": settings.pop("server"),
        "revisions": [revision.name for revision in REVISIONS],
        "settings": settings,
        "extensions": {extension.identifier: dict(extension.settings) for extension in host.roles.extensions},
        **asdict(describe(host)),
    }
