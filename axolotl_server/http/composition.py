"""The application of a server, with all that its settings and its container ask for around the endpoint."""

from typing import TYPE_CHECKING

from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp, ReplyAtOnce
from axolotl_server.http.exposure import is_authenticated
from axolotl_server.http.premises import IGate, Premises, Route

if TYPE_CHECKING:
    from axolotl_server.console.routes import ConsoleRoutes

__all__ = ["make_app"]


def make_app(host: ServerHost, reply_at_once: ReplyAtOnce | None = None) -> HttpApp:
    """Make the application of a server that has started."""
    gate = _gate_of(host)
    console = _console_of(host, gate)
    routes = _routes_of(host) | ({} if console is None else console.by_path())
    kind = _kind_of(host)
    app = kind(host.handler, host.settings, reply_at_once, host.roles.event_store, Premises(gate, routes))
    host.on_stop(app.sessions.close)
    if console is not None:
        console.sessions = app.sessions
    if host.observation is not None:
        host.observation.watch_refusals(app.refused)
    return app


def _kind_of(host: ServerHost) -> type[HttpApp]:
    """Choose an application that pages of other origins can use only where there are such."""
    if not host.settings.http.allowed_origins:
        return HttpApp
    from axolotl_server.http.cross_origin import CrossOriginApp

    return CrossOriginApp


def _console_of(host: ServerHost, gate: IGate | None) -> "ConsoleRoutes | None":
    if host.console is None:
        return None
    from axolotl_server.console.routes import ConsoleRoutes

    return ConsoleRoutes(host, host.console, gate)


def _gate_of(host: ServerHost) -> IGate | None:
    if not is_authenticated(host):
        return None
    from axolotl_server.identity.composition import make_gate

    made = make_gate(host.settings.auth, host.roles.token_verifier)
    host.on_stop(made.close)
    return made.gate


def _routes_of(host: ServerHost) -> dict[str, Route]:
    routes: dict[str, Route] = {}
    if host.observation is not None and host.observation.page is not None:
        routes[host.settings.metrics.path] = Route(host.observation.page.serve, is_open=True)
    if is_authenticated(host):
        from axolotl_server.identity.metadata import metadata_routes

        routes |= metadata_routes(host.settings)
    if host.settings.health.enabled:
        from axolotl_server.health.routes import health_routes

        routes |= health_routes(host)
    return routes
