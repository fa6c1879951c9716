"""Tables of the documentation that are generated from the code."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from axolotl_core.protocol.versions import REVISIONS, Revision
from benchmarks.instructions.__main__ import RECORD
from benchmarks.instructions.comparison import (
    AUTHORIZATION,
    FLOOR,
    PLAIN,
    READ_ONLY,
    SESSION,
    STATELESS,
    STDIO,
    TOGETHER,
)

_FEATURES: Final = {
    "stateless": "no handshake: every request has its version and capabilities",
    "batches": "batches",
    "tool_annotations": "tool annotations",
    "audio": "audio content",
    "progress_messages": "messages in progress notifications",
    "titles": "`title` and `_meta` on tools and content",
    "structured_output": "output schemas and structured content",
    "resource_links": "resource links in content",
    "icons": "icons",
    "argument_errors_as_results": "invalid arguments are a result that the model reads",
    "any_structured_root": "structured content of any JSON type",
    "tasks": "tasks, without an extension",
    "polling": "a server can close a stream early; the client reconnects for the rest",
    "elicitation": "forms that the user fills in (elicitation)",
    "rich_forms": "forms with titled and multiple choices, and defaults for all fields",
    "url_elicitation": "pages that the user opens (URL elicitation)",
    "elicitation_ids": "ids for pages that the user opens",
    "sampling_tools": "sampling with tools, and several blocks per message",
}

CONTRACT_RULES: Final = {
    "property-added": "A property was added",
    "property-removed": "A property was removed",
    "values-changed": "Other values are allowed",
    "text-changed": "A title, a description, a default or another keyword without an effect on validation was changed",
    "feature-added": "A feature was added",
    "feature-removed": "A feature was removed",
    "name-case-changed": "The case of a name was changed",
    "output-schema-added": "An output schema was added",
    "output-schema-removed": "The output schema was removed",
    "toolset-changed": "The tool set was changed, by which rules and profiles select tools",
    "hint-lost": "A hint was lost by which clients approve calls without a question",
    "annotation-changed": "An annotation was changed",
    "scope-added": "A scope is required now",
    "scope-removed": "A scope is no longer required",
    "approval-added": "Calls need approval now",
    "approval-removed": "Calls no longer need approval",
    "limit-lowered": "A limit was lowered",
    "limit-raised": "A limit was raised",
    "task-support-added": "Calls can run as tasks now",
    "task-support-changed": "The support for tasks was changed",
    "page-changed": "The page that displays results was changed",
    "argument-added": "An optional argument was added to a prompt",
    "argument-required": "A prompt requires an argument that it did not require before",
    "argument-optional": "An argument of a prompt became optional",
    "argument-removed": "An argument of a prompt was removed",
    "resource-kind-changed": "A resource became a template, or a template a resource",
    "mime-type-changed": "The MIME type was changed",
    "cache-hint-changed": "The time that clients may cache the contents was changed",
    "skill-changed": "The files of a skill were changed",
}


def revisions_table() -> str:
    """Build the table of features by revision."""
    columns = ("Feature", *(f"`{revision.name}`" for revision in REVISIONS))
    return table(columns, [(text, *_marks(feature)) for feature, text in _FEATURES.items()])


def contract_rules_table() -> str:
    """Build the table of the rules that find changes of a contract."""
    return table(("Rule", "Finds"), [(f"`{rule}`", meaning) for rule, meaning in CONTRACT_RULES.items()])


_LAYER_TEXTS: Final = {
    AUTHORIZATION: "[authorization](../operate/authorization.md), 10 rules",
    "quota, 2 rules": "[quota](../operate/limits.md#quotas), 2 rules, in memory",
    "token, known": "[token](../operate/authentication.md) in the cache (JWT)",
    "metrics page": "[metrics page](../operate/observability.md#metrics)",
    "OTel metrics": "OpenTelemetry metrics",
    "OTel traces": "OpenTelemetry traces, every call sampled",
    READ_ONLY: '[audit log](../operate/audit.md), `"write"`, for a tool with `read_only=True`',
    "audit log": "the same for a tool without annotations: two records",
    TOGETHER: "token, authorization, quota, audit log with two records, and metrics page together",
}


def layer_costs_table() -> str:
    """Build the table of the recorded instructions of each layer, compared with a plain call."""
    [counts] = json.loads(RECORD.read_text()).values()
    plain = counts[PLAIN]
    rows = [
        (text, f"{(counts[name] - plain) / 1000:.0f}", f"{counts[name] / plain:.2f}")
        for name, text in _LAYER_TEXTS.items()
    ]
    return table(("Layer", "Thousands of instructions more", "× plain"), rows)


_CALL_TEXTS: Final = {
    FLOOR: "a bare ASGI application under uvicorn that parses the body and answers a constant",
    STATELESS: "`tools/call` over HTTP, stateless",
    SESSION: "`tools/call` over HTTP, with a session",
    STDIO: "`tools/call` over stdio, one at a time",
}


def call_costs_table() -> str:
    """Build the table of the recorded instructions of a call, compared with a bare ASGI application."""
    [counts] = json.loads(RECORD.read_text()).values()
    rows = [
        (text, f"{counts[name] / 1000:.0f}", f"{counts[name] / counts[FLOOR]:.2f}")
        for name, text in _CALL_TEXTS.items()
    ]
    return table(("Call", "Thousands of instructions", "× bare ASGI application"), rows)


def feature_names() -> set[str]:
    """Return the features that the code knows."""
    return set(Revision.__struct_fields__) - {"name"}


def described_features() -> set[str]:
    """Return the features that the table shows."""
    return set(_FEATURES)


def _marks(feature: str) -> Iterator[str]:
    return ("yes" if getattr(revision, feature) else "–" for revision in REVISIONS)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
