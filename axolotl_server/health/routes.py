"""The routes that probes ask: open to everybody, because probes know neither a name nor a token."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from axolotl_server.health.findings import Report
from axolotl_server.health.health import make_health
from axolotl_server.host import ServerHost
from axolotl_server.http.asgi import Receive, Scope, Send
from axolotl_server.http.premises import Route, ServeRoute
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import JSON

__all__ = ["health_routes"]

_Question: TypeAlias = Callable[[], Awaitable[Report]]

_NO_STORE: Final = (b"cache-control", b"no-store")
_ALLOW: Final = (b"allow", b"GET, HEAD")


def health_routes(host: ServerHost) -> dict[str, Route]:
    """Make the routes that the settings ask for, by their paths."""
    settings = host.settings.health
    health = make_health(host)

    async def liveness() -> Report:
        return health.liveness()

    questions: dict[str, _Question] = {
        settings.live_path: liveness,
        settings.ready_path: health.readiness,
        settings.startup_path: health.startup,
        settings.path: health.everything,
    }
    return {
        path: Route(_serving(question, settings.details), is_open=True) for path, question in questions.items() if path
    }


def _serving(question: _Question, details: bool) -> ServeRoute:
    async def serve(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[_ALLOW])
        report = await question()
        body = report.body(details)
        about = [JSON, _NO_STORE, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": report.status, "headers": about})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return serve
