"""What a server offers as the commands show it: each feature, and what holds for it after everything was weighed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from axolotl_core.app_link import APP_MIME_TYPE, APP_SCHEME, app_link
from axolotl_core.registry import AnyResource
from axolotl_core.schema import JsonSchema
from axolotl_core.spec import Limits
from axolotl_server.binding import Binding
from axolotl_server.host import ServerHost
from axolotl_server.roles import FeatureSet

__all__ = [
    "FeatureDescription",
    "Offer",
    "PromptDescription",
    "ResourceDescription",
    "TemplateDescription",
    "ToolDescription",
    "describe",
]


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
        tuple(
            PromptDescription(*_common(binding, prompts), binding.prompt.arguments_schema)
            for binding in host.prompts.bindings()
        ),
        tuple(
            ResourceDescription(
                *_common(binding, resources),
                binding.resource.uri,
                _mime_type(binding.resource, binding.resource.uri),
                binding.resource.size,
            )
            for binding in host.resources.bindings()
        ),
        tuple(
            TemplateDescription(
                *_common(binding, resources),
                binding.resource.uri_template,
                _mime_type(binding.resource, binding.resource.uri_template),
                binding.resource.arguments_schema,
            )
            for binding in host.templates.bindings()
        ),
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


def _common(
    binding: Binding[Any], sets: dict[int, str | None]
) -> tuple[str, str | None, str, str | None, Limits, tuple[str, ...]]:
    spec, feature = binding.spec, binding.spec.feature
    layers = tuple(f"{type(layer).__module__}.{type(layer).__qualname__}" for layer in binding.layers)
    return feature.name, feature.title, feature.description, sets.get(id(feature)), spec.limits, layers
