"""The description of a server for the page: identity, limits, features and activity."""

import heapq
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Final

from msgspec.structs import asdict

from axolotl_core.arguments import property_of
from axolotl_core.features.completion import CompletableFunction, ICompletable, choices_in
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import type_of_layer
from axolotl_core.policies.quota import QuotaRule
from axolotl_core.protocol.identity import Implementation, Principal
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.schema import JsonSchema
from axolotl_core.task_engine import TASKS_EXTENSION
from axolotl_server.access.quotas import quota_rules
from axolotl_server.calls.binding import Binding
from axolotl_server.hosting.assembly import ServerAssembly
from axolotl_server.hosting.container_loading import import_path
from axolotl_server.layers.call_ending import ObserverLayer
from axolotl_server.sessions.session import Session

_DISTRIBUTION: Final = "axolotl-mcp"
_MAX_SESSIONS: Final = 50


def describe_server(server: ServerAssembly) -> dict[str, Any]:
    """Describe the server, its limits and its features."""
    settings = server.settings
    rules = quota_rules(settings.quotas)
    return {
        "server": {"name": settings.server.name, "title": settings.server.title, "version": settings.server.version},
        "documentation": _documentation(),
        "target": None if server.target is None else {"name": server.target, **import_path(server.target)._asdict()},
        "protocol": {
            "endpoint": settings.http.path,
            "version": LATEST_STATELESS_REVISION.name,
            "version_key": PROTOCOL_VERSION_KEY,
            "capabilities_key": CLIENT_CAPABILITIES_KEY,
            "client_key": CLIENT_INFO_KEY,
            "log_level_key": LOG_LEVEL_KEY,
            "tasks_extension": TASKS_EXTENSION,
            "offers": sorted(server.roles.offers),
        },
        "limits": {
            "max_inflight": settings.limits.max_inflight,
            "max_concurrency": settings.limits.max_concurrency,
            "max_message_bytes": settings.limits.max_message_bytes,
            "threads": settings.limits.threads,
            "drain_seconds": settings.http.drain_seconds,
        },
        "tools": dict(_features(server.tools.bindings(), rules)),
        "prompts": dict(_features(server.prompts.bindings(), rules)),
        "resources": dict(_features([*server.resources.bindings(), *server.templates.bindings()], rules)),
    }


def describe_principal(principal: Principal) -> dict[str, Any]:
    """Describe the caller, without the claims of a token."""
    return {
        "subject": principal.subject,
        "tenant": principal.tenant,
        "scopes": sorted(principal.scopes),
        "roles": sorted(principal.roles),
    }


def describe_activity(server: ServerAssembly, sessions: Sequence[Session]) -> dict[str, Any]:
    """Describe what runs now, and the sessions that were used last."""
    inflight = server.inflight
    return {
        "running": len(inflight),
        "zombies": len(inflight.zombies),
        "session_count": len(sessions),
        "sessions": list(_sessions(sessions)),
    }


def _sessions(sessions: Iterable[Session]) -> Iterator[dict[str, Any]]:
    """Describe sessions without their IDs, which would let anybody take them over."""
    started = time.time() - time.monotonic()
    for session in heapq.nlargest(_MAX_SESSIONS, sessions, key=lambda one: one.last_used):
        yield {
            "id": sha256(session.id).hexdigest()[:8],
            "client": _named(session.client),
            "revision": None if session.era is None else session.era.revision.name,
            "subject": session.principal.subject,
            "last_used": round(started + session.last_used),
            "running": len(session.calls),
            "in_use": session.in_use,
        }


def _named(client: Implementation | None) -> str | None:
    return None if client is None else f"{client.name} {client.version}"[:120]


@cache
def _documentation() -> str | None:
    """Return the address of the documentation, as the installed package declares it."""
    try:
        links = metadata(_DISTRIBUTION).get_all("Project-URL") or ()
    except PackageNotFoundError:
        return None
    named = dict(link.split(", ", 1) for link in links)
    return named.get("Documentation")


def _features(
    bindings: Iterable[Binding[FeatureSpec]], rules: Iterable[QuotaRule]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for binding in bindings:
        spec = binding.spec
        yield (
            spec.name,
            {
                "toolset": spec.toolset,
                "limits": asdict(spec.limits),
                "layers": [
                    type_of_layer(layer).__name__ for layer in binding.layers if not isinstance(layer, ObserverLayer)
                ],
                "cost": spec.feature.cost,
                "quotas": [f"{rule.name}: {rule.limit}" for rule in rules if rule.concerns(spec)],
                "scopes": sorted(spec.feature.scopes),
                "task_support": spec.tool.task_support if isinstance(spec, ToolSpec) else None,
                "choices": dict(_choices(spec.feature)),
                "completed": _completed(spec.feature),
            },
        )


def _choices(feature: IFeature) -> Iterator[tuple[str, Sequence[str]]]:
    """Return the values of arguments that take only certain values."""
    if not isinstance(feature, ICompletable):
        return
    for name in feature.arguments_schema.get("properties", {}):
        schema = property_of(feature.arguments_schema, name)
        if _is_closed(schema):
            yield name, choices_in(schema, "")


def _is_closed(schema: JsonSchema) -> bool:
    alternatives: Sequence[Mapping[str, Any]] = schema.get("anyOf") or (schema,)
    values = [one for one in alternatives if one.get("type") != "null"]
    return all(not {"enum", "const"}.isdisjoint(one) or one.get("type") == "boolean" for one in values)


def _completed(feature: IFeature) -> Sequence[str]:
    """Return the arguments for which code of the application suggests values."""
    if isinstance(feature, CompletableFunction):
        return sorted(feature.completers)
    if isinstance(feature, ICompletable) and type(feature).complete is not ICompletable.complete:
        return list(feature.arguments_schema.get("properties", {}))
    return []
