"""What is served at `/console`: the page, its files, what it shows and what it hears."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

from axolotl_core.protocol.wire import encode
from axolotl_server.console.admission import check_local, check_page_of_ours
from axolotl_server.console.assets import PAGE_HEADERS, Asset, load_assets
from axolotl_server.console.console import CONSOLE_PATH, Console
from axolotl_server.console.description import describe_server, describe_sessions
from axolotl_server.console.feed import Feed
from axolotl_server.host import ServerHost
from axolotl_server.http.asgi import Receive, Scope, Send
from axolotl_server.http.listening import until_client_leaves
from axolotl_server.http.premises import IGate, Route, ServeRoute
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import send_json
from axolotl_server.http.sessions import Sessions
from axolotl_server.http.stream import EventStream

__all__ = ["ConsoleRoutes"]

_PAGE = "console.html"


class ConsoleRoutes:
    """Answers the page; its data is behind the same gate as the endpoint."""

    def __init__(self, host: ServerHost, console: Console, gate: IGate | None) -> None:
        self._host = host
        self._console = console
        self._gate = gate
        self._keep_alive_seconds = host.settings.http.keep_alive_seconds
        self.sessions: Sessions | None = None
        """Those of the application, once there is one."""

    def by_path(self) -> dict[str, Route]:
        """Give the routes."""
        assets = load_assets()
        served: dict[str, ServeRoute] = {
            CONSOLE_PATH: partial(_serve_asset, assets[_PAGE]),
            f"{CONSOLE_PATH}/": partial(_serve_asset, assets[_PAGE]),
            **{f"{CONSOLE_PATH}/{name}": partial(_serve_asset, asset) for name, asset in assets.items()},
            f"{CONSOLE_PATH}/state": self._serve_state,
            f"{CONSOLE_PATH}/events": self._serve_events,
        }
        return {path: Route(_guarded(serve)) for path, serve in served.items()}

    async def _serve_state(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        await self._admit(headers)
        state = {
            **describe_server(self._host),
            "generation": self._console.generation,
            "shows_arguments": self._console.shows_arguments,
            "running": len(self._host.handler.inflight),
            "zombies": len(self._host.handler.inflight.zombies),
            "sessions": describe_sessions(() if self.sessions is None else self.sessions.all()),
        }
        await send_json(send, 200, encode(state), list(PAGE_HEADERS))

    async def _serve_events(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        await self._admit(headers)
        assert self.sessions is not None
        headers_of_page = [pair for pair in PAGE_HEADERS if pair[0] != b"cache-control"]  # the stream has its own
        stream = EventStream(send, headers_of_page, self._keep_alive_seconds)
        loop = asyncio.get_running_loop()
        with self.sessions.guest(stream.abandon), self._console.telling(Feed(stream, loop)):
            watcher = loop.create_task(until_client_leaves(receive, stream.abandon))
            try:
                await stream.run()
            finally:
                watcher.cancel()

    async def _admit(self, headers: Mapping[bytes, bytes]) -> None:
        check_page_of_ours(headers)
        if self._gate is not None:
            await self._gate.admit(headers)


def _guarded(serve: ServeRoute) -> ServeRoute:
    async def guarded(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        check_local(scope, headers)
        if scope["method"] != "GET":
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[(b"allow", b"GET")])
        await serve(scope, headers, receive, send)

    return guarded


async def _serve_asset(
    asset: Asset, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send
) -> None:
    own: Iterable[tuple[bytes, bytes]] = (
        (b"content-type", asset.content_type),
        (b"content-length", b"%d" % len(asset.content)),
    )
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *PAGE_HEADERS]})
    await send({"type": "http.response.body", "body": asset.content})
