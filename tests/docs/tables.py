"""Tables of the documentation that are made from the code."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_server.settings import ServerSettings
from axolotl_server.tool_settings import ToolOverrides

Row: TypeAlias = tuple[str, str, str]

_FACTORY_MADE: Final = {"server.version": "the version of `axolotl-mcp`"}
_FEATURES: Final = {
    "stateless": "no handshake; every request says its version and capabilities",
    "batches": "batches",
    "tool_annotations": "annotations on tools",
    "audio": "audio content",
    "progress_messages": "messages in progress notifications",
    "titles": "`title` and `_meta` on tools and content",
    "structured_output": "output schemas and structured content",
    "resource_links": "links to resources in content",
    "icons": "icons",
    "argument_errors_as_results": "wrong arguments are a result that the model reads",
    "any_structured_root": "structured content of any JSON type",
    "tasks": "calls that run as tasks, without an extension",
    "polling": "a server may end a stream's connection early; the client comes back for the rest",
    "elicitation": "the user may be asked to fill in a form",
    "rich_forms": "forms with titled and multiple choices, and defaults for all fields",
    "url_elicitation": "the user may be asked to open a page",
    "elicitation_ids": "a question to open a page has an id",
    "sampling_tools": "the client's model may be given tools, and several blocks in a message",
}


def settings_table(page: str) -> str:
    """Make the table of settings; what each means is taken over from the page."""
    meanings = dict(re.findall(r"^\| `([a-z_.<>\[\]]+)` \|.*\| ([^|]*) \|$", page, re.MULTILINE))
    rows = [(f"`{name}`", kind, default, meanings.get(name, "")) for name, kind, default in settings()]
    return table(("Setting", "Type", "Default", "Meaning"), rows)


def settings() -> Iterator[Row]:
    """Give name, type and default of every setting; `<name>` is a name of somebody's choice, `[]` any of a list."""
    schema = ServerSettings.model_json_schema()
    yield from _settings_in("", schema, schema["$defs"])
    overrides = ToolOverrides.model_json_schema()
    yield from _settings_in("tools.<name>.", overrides, {})


def _settings_in(prefix: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Row]:
    for name, field in schema["properties"].items():
        place = f"{prefix}{name}"
        marker, section = _section(field)
        if section is not None:
            yield from _settings_in(f"{place}{marker}.", definitions[section], definitions)
        else:
            yield place, _kind(field), _FACTORY_MADE.get(place) or _default(field)


def _section(field: Mapping[str, Any]) -> tuple[str, str | None]:
    """Say which table a field holds, and how its place is written: by itself, by name, or as one of a list."""
    if "$ref" in field:
        return "", str(field["$ref"]).removeprefix("#/$defs/")
    if "anyOf" in field:
        return next((found for found in map(_section, field["anyOf"]) if found[1] is not None), ("", None))
    if field.get("type") == "array":
        return "[]", _section(field["items"])[1]
    if field.get("type") == "object":
        values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
        return ".<name>", _section(next(filter(None, values)))[1]
    return "", None


def _default(field: Mapping[str, Any]) -> str:
    if "default" not in field:
        return "required"
    return "–" if field["default"] is None else f"`{json.dumps(field['default'])}`"


def _kind(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(part) for part in field["anyOf"] if part != {"type": "null"})
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if field["type"] == "array":
        items = field["items"]
        return f"list of {_kind(items)}" + ("" if "enum" in items else "s")
    bounds = [("exclusiveMinimum", "above {:g}"), ("minimum", "from {:g}"), ("maximum", "to {:g}")]
    return " ".join([field["type"], *(text.format(field[bound]) for bound, text in bounds if bound in field)])


def revisions_table() -> str:
    """Make the table of what each protocol revision can express."""
    columns = ("", *(f"`{revision.name}`" for revision in REVISIONS))
    return table(columns, [(text, *_marks(feature)) for feature, text in _FEATURES.items()])


def feature_names() -> set[str]:
    """Name the features that the code knows."""
    return set(Revision.__slots__) - {"name"}


def described_features() -> set[str]:
    """Name the features that the table shows."""
    return set(_FEATURES)


def _marks(feature: str) -> Iterator[str]:
    return ("yes" if getattr(revision, feature) else "–" for revision in REVISIONS)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
