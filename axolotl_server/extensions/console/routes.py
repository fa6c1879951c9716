"""The routes at `/console`: the page with its files, its data and its events."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hmac import compare_digest
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qsl

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.wire import encode
from axolotl_server.extension import PanelAction
from axolotl_server.extensions.console.console import CONSOLE_PATH, Console, Feed
from axolotl_server.extensions.console.description import describe_activity, describe_principal, describe_server
from axolotl_server.hosting.assembly import ServerAssembly
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
from axolotl_server.sessions.sessions import Sessions
from axolotl_server.urls import is_loopback

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
        self,
        server: ServerAssembly,
        console: Console,
        gate: IAuthenticator | None,
        sessions: Callable[[], Sessions],
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
            caller = await self._admit(headers)
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
        await self._admit(headers)
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

    async def _admit(self, headers: Mapping[bytes, bytes]) -> Principal:
        check_own_page(headers, self._console.token)
        return ANONYMOUS if self._gate is None else await self._gate.admit(headers.get(b"authorization"), None, headers)


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
