"""What a page shows of a server besides its calls: the limits and layers of all it offers, and its sessions."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from axolotl_core.protocol.messages import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    PROTOCOL_VERSION_KEY,
)
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.quota import QuotaRule
from axolotl_core.spec import FeatureSpec, ToolSpec
from axolotl_server.binding import Binding
from axolotl_server.capabilities import TASKS_EXTENSION
from axolotl_server.console.observer import Observer
from axolotl_server.host import ServerHost
from axolotl_server.http.session import Session
from axolotl_server.quotas.building import quota_rules

__all__ = ["describe_server", "describe_sessions"]


def describe_server(host: ServerHost) -> dict[str, Any]:
    """Say what holds for the server and for each feature."""
    settings = host.settings
    rules = quota_rules(settings.quotas)
    return {
        "server": {"name": settings.server.name, "title": settings.server.title, "version": settings.server.version},
        "protocol": {
            "endpoint": settings.http.path,
            "version": LATEST_STATELESS_REVISION.name,
            "version_key": PROTOCOL_VERSION_KEY,
            "capabilities_key": CLIENT_CAPABILITIES_KEY,
            "client_key": CLIENT_INFO_KEY,
            "log_level_key": LOG_LEVEL_KEY,
            "tasks_extension": TASKS_EXTENSION,
            "offers": sorted(host.roles.offers),
        },
        "limits": {
            "max_inflight": settings.limits.max_inflight,
            "max_concurrency": settings.limits.max_concurrency,
            "max_message_bytes": settings.limits.max_message_bytes,
            "threads": settings.limits.threads,
            "drain_seconds": settings.http.drain_seconds,
        },
        "tools": dict(_effects(host.catalogue.bindings(), rules)),
        "prompts": dict(_effects(host.prompts.bindings(), rules)),
        "resources": dict(_effects([*host.resources.bindings(), *host.templates.bindings()], rules)),
    }


def describe_sessions(sessions: Iterable[Session]) -> list[dict[str, Any]]:
    """Say who is connected; a session's id would let anybody take it over, so that it is not shown."""
    now = time.monotonic()
    return [
        {
            "id": sha256(session.id).hexdigest()[:8],
            "client": None if session.client is None else f"{session.client.name} {session.client.version}"[:120],
            "revision": None if session.era is None else session.era.revision.name,
            "subject": session.principal.subject,
            "idle_seconds": round(now - session.last_used, 1),
            "running": len(session.calls),
            "in_use": session.in_use,
        }
        for session in sessions
    ]


def _effects(
    bindings: Iterable[Binding[FeatureSpec]], rules: Iterable[QuotaRule]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for binding in bindings:
        spec = binding.spec
        yield (
            spec.name,
            {
                "toolset": spec.toolset,
                "limits": asdict(spec.limits),
                "layers": [type(layer).__name__ for layer in binding.layers if not isinstance(layer, Observer)],
                "cost": spec.feature.cost,
                "quotas": [f"{rule.name}: {rule.limit}" for rule in rules if rule.concerns(spec)],
                "scopes": sorted(spec.feature.scopes),
                "task_support": spec.tool.task_support if isinstance(spec, ToolSpec) else None,
            },
        )
