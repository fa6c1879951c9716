"""Snapshots: what a client sees, as sorted JSON without the parts that change with each run."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from axolotl_core.errors import MethodNotFound
from axolotl_core.protocol.messages import PROTOCOL_PREFIX
from axolotl_core.protocol.result_keys import META_PREFIX
from axolotl_server.client.client import Client
from axolotl_server.client.outcomes import CallOutcome, PromptOutcome, RemoteError, ResourceOutcome

_NO_SUCH_METHOD: Final = MethodNotFound.code

_CHANGING: Final = (
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<date>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<date>"),
    (re.compile(r"(?i)(?<=reference[: ])( ?)[0-9a-f]{8,}\b"), r"\1<reference>"),
)
"""Patterns of texts that change with each run, and what they become."""

_REPLACED: Final = {"reference": "<reference>", f"{META_PREFIX}reference": "<reference>", "taskId": "<id>"}
"""Members whose values change with each run."""


async def listing(client: Client) -> str:
    """List the tools, prompts, resources and templates that a client sees, sorted by name, as JSON for a snapshot."""
    return _text(
        {
            "tools": await _sorted(client.list_tools, "name"),
            "prompts": await _sorted(client.list_prompts, "name"),
            "resources": await _sorted(client.list_resources, "uri"),
            "resourceTemplates": await _sorted(client.list_resource_templates, "uriTemplate"),
        }
    )


def plain(outcome: CallOutcome | PromptOutcome | ResourceOutcome) -> str:
    """Return a result as JSON for a snapshot, with placeholders for IDs, dates and references."""
    fields = msgspec.to_builtins(outcome, str_keys=True)
    fields["meta"] = {name: value for name, value in outcome.meta.items() if not name.startswith(PROTOCOL_PREFIX)}
    return _text(_stable({name: value for name, value in fields.items() if value not in (None, {})}))


async def _sorted(list_all: Any, key: str) -> list[dict[str, Any]]:
    try:
        return sorted(await list_all(), key=lambda one: str(one[key]))
    except RemoteError as error:
        if error.code == _NO_SUCH_METHOD:
            return []
        raise


def _stable(value: Any) -> Any:
    match value:
        case str():
            for pattern, placeholder in _CHANGING:
                value = pattern.sub(placeholder, value)
            return value
        case Mapping():
            return {name: _REPLACED.get(name) or _stable(inner) for name, inner in value.items()}
        case Sequence():
            return [_stable(inner) for inner in value]
        case _:
            return value


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
