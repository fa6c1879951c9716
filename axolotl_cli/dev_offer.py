"""What a process of `axolotl dev` says about what it serves, so that another can tell what became different."""

import socket
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from axolotl_cli.counts import counts_in
from axolotl_cli.listening import url_of
from axolotl_core.spec import FeatureSpec, ToolSpec
from axolotl_server.host import ServerHost

__all__ = ["describe_offer"]


def describe_offer(host: ServerHost, listener: socket.socket) -> dict[str, Any]:
    """Name the server, where it is and all that it offers, with a digest of each list."""
    http = host.settings.http
    lists: dict[str, list[FeatureSpec]] = {
        "tools": [binding.spec for binding in host.catalogue.bindings()],
        "prompts": [binding.spec for binding in host.prompts.bindings()],
        "resources": [binding.spec for one in (host.resources, host.templates) for binding in one.bindings()],
    }
    return {
        "name": host.settings.server.name,
        "url": url_of(http, listener),
        "counts": counts_in(host),
        "offer": sorted(f"{spec.kind} {spec.name}" for specs in lists.values() for spec in specs),
        "lists": {kind: _digest(specs) for kind, specs in lists.items() if kind in host.roles.offers},
        "moved": http.port not in (0, listener.getsockname()[1]),
    }


def _digest(specs: Iterable[FeatureSpec]) -> str:
    return blake2b(repr([_described(spec) for spec in specs]).encode(), digest_size=16).hexdigest()


def _described(spec: FeatureSpec) -> tuple[Any, ...]:
    feature = spec.feature
    said = (spec.name, feature.title, feature.description, getattr(feature, "arguments_schema", None))
    return (*said, spec.input_schema, spec.output_schema, spec.tool.annotations) if isinstance(spec, ToolSpec) else said
