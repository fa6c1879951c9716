"""The routes at `/console`: the page with its files, its events, and its data about the server."""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from hmac import compare_digest
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec.structs import asdict

from axolotl_core.arguments import property_of
from axolotl_core.features.completion import CompletableFunction, ICompletable, choices_in
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import type_of_layer
from axolotl_core.policies.quota import QuotaRule
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_core.schema import JsonSchema
from axolotl_core.task_engine import TASKS_EXTENSION
from axolotl_server.access.quotas import quota_rules
from axolotl_server.calls.binding import Binding
from axolotl_server.extension import PanelAction
from axolotl_server.extensions.console.console import CONSOLE_PATH, Console, Feed
from axolotl_server.extensions.console.journal import named
from axolotl_server.hosting.assembly import ServerAssembly
from axolotl_server.hosting.container_loading import import_path
from axolotl_server.http.asgi import (
    HttpRefusal,
    IAuthenticator,
    Receive,
    Route,
    Scope,
    Send,
    ServeRoute,
    send_json,
    until_client_leaves,
)
from axolotl_server.http.event_stream import EventStream, KeepAlive
from axolotl_server.layers.call_ending import ObserverLayer
from axolotl_server.sessions.session import Session
from axolotl_server.sessions.sessions import Sessions
from axolotl_server.urls import is_loopback

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
            "client": named(session.client),
            "revision": None if session.era is None else session.era.revision.name,
            "subject": session.principal.subject,
            "last_used": round(started + session.last_used),
            "running": len(session.calls),
            "in_use": session.in_use,
        }


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


CONSOLE_HEADER: Final = b"x-axolotl-console"
"""Sent by the page with every request for data, with the token from its link; pages of other sites cannot send it."""

_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")


def check_local(scope: Scope, headers: Mapping[bytes, bytes]) -> None:
    """Refuse requests from other machines, through proxies, or with a host name that anybody could point here."""
    client = scope.get("client")
    if not client or not is_loopback(client[0]) or any(name in headers for name in _FORWARDED):
        raise HttpRefusal(403, "Forbidden: open the console on the machine that runs the server")
    name, _, port = _host_of(headers).rpartition(":")
    if not is_loopback(name if port.isdecimal() else _host_of(headers)):
        raise HttpRefusal(421, "Misdirected request: open the console at localhost, 127.0.0.1 or [::1]")
    origin = headers.get(b"origin")
    if (
        origin is not None
        and origin.decode("latin-1").lower() != f"{scope.get('scheme', 'http')}://{_host_of(headers)}"
    ):
        raise HttpRefusal(403, "Forbidden: the console is for its own page only")


def check_own_page(headers: Mapping[bytes, bytes], token: str) -> None:
    """Refuse requests that pages of other sites could make a browser send, or that do not know the token.

    A proxy on the same machine that adds no header looks like a local browser, but does not know the token.
    """
    site = headers.get(b"sec-fetch-site", b"same-origin")
    sent = headers.get(CONSOLE_HEADER)
    if sent is None or site != b"same-origin":
        raise HttpRefusal(403, "Forbidden: the console's data is for its own page, which sends X-Axolotl-Console")
    if not compare_digest(sent, token.encode()):
        raise HttpRefusal(403, "Forbidden: open the console with the link that the server printed when it started")


def _host_of(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(b"host", b"").decode("latin-1").lower()


_TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "media-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
PAGE_HEADERS: Final[Sequence[tuple[bytes, bytes]]] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)
"""Sent with every response: only our own files run, in no frame, and nothing is cached."""


class ConsoleRoutes:
    """Serves the page; its data needs the same authentication as the endpoint."""

    def __init__(
        self, server: ServerAssembly, console: Console, gate: IAuthenticator | None, sessions: Callable[[], Sessions]
    ) -> None:
        self._server = server
        self._sessions = sessions
        self._console = console
        self._gate = gate
        self._keep_alive = KeepAlive(server.settings.http.keep_alive_seconds)
        self._panels = {one.name: one for extension in server.extensions for one in extension.panels()}

    def by_path(self) -> dict[str, Route]:
        """Return the routes by path."""
        folder = files("axolotl_server.extensions.console") / "page"
        found = [(file.name, file.read_bytes()) for file in folder.iterdir() if file.is_file()]
        pages = {
            f"/{name}": partial(_serve_file, (_TYPES[name[name.rindex(".") :]], content)) for name, content in found
        }
        served: dict[str, ServeRoute] = {
            **pages,
            "": pages["/console.html"],
            "/": pages["/console.html"],
            "/state": self._answering(self._state),
            "/events": self._serve_events,
            **{f"/{name}": self._answering(panel.describe) for name, panel in self._panels.items()},
        }
        routes = {f"{CONSOLE_PATH}{path}": Route(_local_only(serve)) for path, serve in served.items()}
        for panel in self._panels.values():
            for name, act in panel.actions.items():
                serve = _local_only(self._answering(act), method="POST")
                routes[f"{CONSOLE_PATH}/{panel.name}/{name}"] = Route(serve)
        return routes

    def _answering(self, act: PanelAction) -> ServeRoute:
        """Serve as JSON what a function returns, to the page of a caller that may have it."""

        async def serve(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
            caller = await self._admit(scope, headers)
            query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
            await send_json(send, 200, encode(await act(query, caller)), list(PAGE_HEADERS))

        return serve

    async def _state(self, query: Mapping[str, str], caller: Principal) -> Mapping[str, Any]:
        return {
            **describe_server(self._server),
            "instance_id": self._console.instance_id,
            "panels": list(self._panels),
            "principal": describe_principal(caller),
        }

    async def _serve_events(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        await self._admit(scope, headers)
        page_headers = [pair for pair in PAGE_HEADERS if pair[0] != b"cache-control"]  # the stream has its own
        stream = EventStream(send, page_headers, self._keep_alive)
        loop = asyncio.get_running_loop()
        feed = Feed(stream, loop, lambda: describe_activity(self._server, self._sessions().all()))
        with self._sessions().other_connection(stream.abandon), self._console.subscribed(feed):
            watcher = loop.create_task(until_client_leaves(receive, stream.abandon))
            try:
                await stream.run()
            finally:
                watcher.cancel()

    async def _admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal:
        check_own_page(headers, self._console.token)
        if self._gate is None:
            return ANONYMOUS
        return await self._gate.admit(headers.get(b"authorization"), scope.get("client"), headers)


def _local_only(serve: ServeRoute, method: str = "GET") -> ServeRoute:
    async def serve_locally(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        check_local(scope, headers)
        if scope["method"] != method:
            raise HttpRefusal(405, f"Method not allowed: use {method}", headers=[(b"allow", method.encode())])
        await serve(scope, headers, receive, send)

    return serve_locally


async def _serve_file(
    file: tuple[bytes, bytes], scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send
) -> None:
    kind, content = file
    own = ((b"content-type", kind), (b"content-length", b"%d" % len(content)))
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *PAGE_HEADERS]})
    await send({"type": "http.response.body", "body": content})
