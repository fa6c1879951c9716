"""The reference of all settings, generated from the schema of the settings file."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from axolotl_server.settings.file_schema import file_schema
from axolotl_server.settings.server import COMMON
from tests.support.docs.tables import table

_COLUMNS: Final = ("Setting", "Type", "Default", "Meaning")
_FACTORY_MADE: Final = {"server.version": "the version of `axolotl-mcp`"}
PAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "settings-server": ("", "server", "http", "stdio", "sessions", "redis"),
    "settings-calls": ("limits", "tools", "toolsets", "tasks", "quotas", "idempotency"),
    "settings-access": ("auth", "authorization", "approval", "audit"),
    "settings-operation": ("protocol", "caching", "subscriptions", "health", "console", "log", "telemetry", "metrics"),
}
"""The sections on each page of the reference; the keys outside of sections have no name."""
_ABOUT: Final = {
    "http": "[transports](../operate/transports.md#http)",
    "stdio": "[transports](../operate/transports.md#stdio)",
    "sessions": "[resumption](../operate/transports.md#resumption)",
    "redis": "[workers](../operate/workers.md#what-workers-share)",
    "limits": "[limits](../operate/limits.md)",
    "protocol": "[errors](errors.md#error-responses), [asking](../guide/asking.md), "
    "[notifications](../guide/notifications.md)",
    "caching": "[caching](../guide/caching.md)",
    "subscriptions": "[notifications](../guide/notifications.md#slow-clients)",
    "tasks": "[tasks](../guide/tasks.md)",
    "quotas": "[limits](../operate/limits.md#rate-limits)",
    "audit": "[audit](../operate/audit.md)",
    "auth": "[authentication](../operate/authentication.md)",
    "authorization": "[authorization](../operate/authorization.md)",
    "approval": "[approval](../operate/approval.md)",
    "idempotency": "[idempotency](../operate/idempotency.md)",
    "console": "[dev](../guide/dev.md)",
    "health": "[health](../operate/health.md)",
    "log": "[observability](../operate/observability.md#logs)",
    "telemetry": "[observability](../operate/observability.md#traces)",
    "metrics": "[observability](../operate/observability.md#metrics)",
    "tools": "[tools](../guide/tools.md)",
    "toolsets": "[tool sets](../guide/containers.md#tool-sets)",
}
"""The page about each section."""

Field = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the file; `<name>` is a user-defined name, `[]` an item of a list."""

    name: str
    kind: str
    default: str
    meaning: str

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Return a table row; the name of a common setting is bold."""
        name = f"**`{self.name}`**" if self.is_common else f"`{self.name}`"
        return name, self.kind, self.default, self.meaning

    @property
    def is_common(self) -> bool:
        """Whether operators often set it, or it is required in a table that they often write."""
        return any(self.name == one or re.match(rf"{re.escape(one)}(\.|\[)", self.name) for one in COMMON)


def settings_reference(page: str) -> str:
    """Build a table for each section of a page."""
    schema = _schema()
    parts = []
    for name in PAGES[page]:
        if name:
            field = schema["properties"][name]
            rows = [one.row for one in _settings_in(name, field, schema["$defs"])]
            parts += [f"## `{name}`\n", _introduction(name, field, schema["$defs"]), table(_COLUMNS, rows)]
        else:
            parts += ["## Top level\n", table(_COLUMNS, [one.row for one in _own_keys(schema)])]
    return "\n".join(parts)


def all_settings() -> list[Setting]:
    """List every setting of a server."""
    schema = _schema()
    sections = [name for name, field in schema["properties"].items() if _table_in(field) is not None]
    inside = [one for name in sections for one in _settings_in(name, schema["properties"][name], schema["$defs"])]
    return [*_own_keys(schema), *inside]


def _schema() -> Field:
    """Return the schema without profiles, which repeat all settings."""
    schema = file_schema()
    return {**schema, "properties": {name: one for name, one in schema["properties"].items() if name != "profile"}}


def _own_keys(schema: Field) -> list[Setting]:
    fields = schema["properties"].items()
    return [_setting(name, field) for name, field in fields if _table_in(field) is None]


def _introduction(name: str, field: Field, definitions: Mapping[str, Field]) -> str:
    inner = _table_in(field)
    assert inner is not None
    more = f" See {_ABOUT[name]}." if name in _ABOUT else ""
    text = definitions[inner[1]]["description"].rstrip(".")
    return f"{text}. Environment variables: `AXOLOTL_{name.upper()}__…`.{more}\n"


def _settings_in(place: str, field: Field, definitions: Mapping[str, Field]) -> Iterator[Setting]:
    inner = _table_in(field)
    if inner is None:
        yield _setting(place, field)
        return
    marker, definition = inner
    schema = definitions[definition]
    files = {f"{name}_file" for name, one in schema["properties"].items() if _secret(one)}
    for name, one in schema["properties"].items():
        if name not in files:
            yield from _settings_in(f"{place}{marker}.{name}", one, definitions)
    if isinstance(schema["additionalProperties"], dict):
        yield from _settings_in(f"{place}{marker}.<name>", schema["additionalProperties"], definitions)


def _table_in(field: Field) -> tuple[str, str] | None:
    """Return the path of a table, which can be fixed, named or an item of a list, and its schema."""
    if "$ref" in field:
        return "", str(field["$ref"]).removeprefix("#/$defs/")
    if "anyOf" in field:
        return next(filter(None, map(_table_in, field["anyOf"])), None)
    inner: Field = {}
    if field.get("type") == "array":
        marker, inner = "[]", field["items"]
    if field.get("type") == "object":
        values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
        marker, inner = ".<name>", next((one for one in values if isinstance(one, dict)), {})
    found = _table_in(inner) if inner else None
    return (marker, found[1]) if found else None


def _setting(place: str, field: Field) -> Setting:
    default = _FACTORY_MADE.get(place) or _default(place, field)
    return Setting(place, _kind(place, field), default, field.get("description", ""))


def _default(place: str, field: Field) -> str:
    if field.get("default") is not None:
        return f"`{json.dumps(field['default'])}`"
    return "–" if "default" in field or "." not in place else "required"


def _secret(field: Field) -> bool:
    parts = [field, *field.get("anyOf", ()), field.get("items", {})]
    return any(part.get("writeOnly") for part in parts)


def _kind(place: str, field: Field) -> str:
    if _secret(field):
        name = place.rpartition(".")[2]
        return f"{'secrets' if field.get('type') == 'array' else 'secret'}, or `{name}_file`"
    if "anyOf" in field:
        return " or ".join(_kind(place, part) for part in field["anyOf"] if part != {"type": "null"})
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if field["type"] == "array":
        items = field["items"]
        return f"list of {_kind(place, items)}" + ("" if "enum" in items else "s")
    bounds = [("exclusiveMinimum", "above {:.15g}"), ("minimum", "from {:.15g}"), ("maximum", "to {:.15g}")]
    kind = "path" if field.get("format") == "path" else field["type"]
    return " ".join([kind, *(text.format(field[bound]) for bound, text in bounds if bound in field)])
