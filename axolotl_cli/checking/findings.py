"""Findings about a container and its settings: errors and possible improvements."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.policies.tool_rules import retry_hazards
from axolotl_core.schema import resolve

if TYPE_CHECKING:
    from axolotl_server.calls.binding import Binding
    from axolotl_server.extensions.skills.published_skill import PublishedSkill

_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_USUAL_NAME: Final = re.compile(r"[a-z0-9_.-]{1,40}")


class Severity(StrEnum):
    """Whether a finding keeps the server from starting."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or possible improvement."""

    severity: Severity
    message: str
    tool: str | None = None
    prompt: str | None = None
    resource: str | None = None
    """The URI of the resource, or its URI template."""


def advice_about_tool(spec: ToolSpec) -> Iterator[Finding]:
    """Suggest improvements of a tool."""
    for message in _problems_of_tool(spec):
        yield Finding(Severity.WARNING, f"Tool {spec.name!r} {message}", tool=spec.name)


def advice_about_stored_tasks(binding: "Binding[ToolSpec]") -> Iterator[Finding]:
    """Find a tool whose tasks wait for approval in a worker, because they may not run again.

    Whether the code of a tool asks cannot be known without running it.
    """
    from axolotl_server.extensions.tasks.task_runner import may_restart
    from axolotl_server.layers.approval import ApprovalLayer

    spec = binding.spec
    if spec.tool.task_support == "forbidden" or may_restart(spec.tool):
        return
    if any(isinstance(layer, ApprovalLayer) for layer in binding.layers):
        problem = (
            f"Tool {spec.name!r} occupies a slot of a worker while its task waits for approval, because it may not run "
            'again: set task_restart to "resume" if it can'
        )
        yield Finding(Severity.WARNING, problem, tool=spec.name)


def advice_about_prompt(spec: FeatureSpec) -> Iterator[Finding]:
    """Suggest improvements of a prompt."""
    prompt: Any = spec.feature
    schema = prompt.arguments_schema
    messages = [] if prompt.description.strip() else ["has no description: users will not know what it is for"]
    messages += [f"does not describe its argument {name!r}" for name in _undescribed(schema, schema)]
    for message in (*messages, *_problems_of_execution(spec)):
        yield Finding(Severity.WARNING, f"Prompt {spec.name!r} {message}", prompt=spec.name)


def advice_about_resource(spec: FeatureSpec) -> Iterator[Finding]:
    """Suggest improvements of a resource or resource template."""
    described = bool(spec.feature.description.strip()) or spec.kind == "skill"  # the SKILL.md describes the other files
    messages = [] if described else ["has no description: clients will not know what it contains"]
    for message in (*messages, *_problems_of_execution(spec)):
        yield Finding(Severity.WARNING, f"Resource {spec.name!r} {message}", resource=spec.name)


def advice_about_skills(skills: "Sequence[PublishedSkill]") -> Iterator[Finding]:
    """Suggest improvements of skills."""
    uris: dict[str, str] = {}
    for skill in skills:
        messages = []
        if skill.name in uris:
            messages.append(f"has the same name as {uris[skill.name]!r}: hosts show both as {skill.name!r}")
        if "allowed-tools" in skill.entry["frontmatter"]:
            messages.append("has allowed-tools, which hosts ignore in skills of a server")
        uris.setdefault(skill.name, skill.uri)
        for message in messages:
            yield Finding(Severity.WARNING, f"Skill {skill.uri!r} {message}", resource=skill.uri)


def _problems_of_tool(spec: ToolSpec) -> Iterator[str]:
    if not _SAFE_NAME.fullmatch(spec.name):
        yield "has a name that some clients refuse: use 1 to 64 of these characters: A-Z a-z 0-9 _ . -"
    elif not _USUAL_NAME.fullmatch(spec.name):
        yield "has a name that models easily get wrong: use at most 40 lower-case characters, such as 'get_order'"
    if not spec.tool.description.strip():
        yield "has no description: a model will not know when to call it"
    for argument in _undescribed(spec.input_schema, spec.input_schema):
        yield f"does not describe its argument {argument!r}"
    if _has_bytes(spec.output_schema):
        yield (
            "returns bytes, which are sent as text, so a call fails if they are not UTF-8: set "
            'ser_json_bytes="base64" in the model_config of their model, or return a content block'
        )
    yield from retry_hazards(spec.tool, spec.limits.execution)
    yield from _problems_of_execution(spec)


def _problems_of_execution(spec: FeatureSpec) -> Iterator[str]:
    if spec.limits.execution == "loop" and not spec.feature.suspends:
        yield "is a plain function on the event loop: it blocks all other calls while it runs"


def _has_bytes(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return schema.get("format") == "binary" or any(map(_has_bytes, schema.values()))
    return isinstance(schema, list) and any(map(_has_bytes, schema))


def _undescribed(
    schema: Any, root: Mapping[str, Any], path: str = "", seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Find arguments without a description, including those inside other arguments."""
    if not isinstance(schema, Mapping) or schema.get("$ref") in seen:
        return
    here, seen = resolve(schema, root), seen | {schema.get("$ref", "")}
    for name, argument in here.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        if not resolve(argument, root).get("description"):
            yield place
        yield from _undescribed(argument, root, place, seen)
    for part in (*here.get("anyOf", ()), *here.get("oneOf", ()), *here.get("allOf", ())):
        yield from _undescribed(part, root, path, seen)
    yield from _undescribed(here.get("items"), root, f"{path}[]", seen)
