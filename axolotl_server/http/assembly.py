"""The HTTP application of a server, built from its settings and roles."""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from axolotl_core.errors import ConfigurationError
from axolotl_server.asgi.client_address import ClientAddresses
from axolotl_server.asgi.http import IAuthenticator, Route, Routing
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.settings.transports import METRICS_PATH, HttpSettings
from axolotl_server.urls import is_loopback

if TYPE_CHECKING:
    from axolotl_server.authentication.assembly import MadeGate
    from axolotl_server.console.routes import ConsoleRoutes
    from axolotl_server.health import Health
    from axolotl_server.http.mounting import MountedApp, PrincipalOf, Target


def tls_context(settings: HttpSettings) -> ssl.SSLContext | None:
    """Load certificates and keys; return None without TLS. Unusable ones are a ConfigurationError."""
    if settings.tls_certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secret = settings.tls_key_password
    # Never None: OpenSSL would ask for a password on the terminal.
    password = "" if secret is None else secret.get_secret_value()
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, lambda: password)
    except (OSError, ValueError) as error:
        raise _unusable("tls_certificate and tls_key", settings.tls_certificate, error) from None
    if settings.tls_client_ca is not None:
        try:
            context.load_verify_locations(settings.tls_client_ca)
        except (OSError, ValueError) as error:
            raise _unusable("tls_client_ca", settings.tls_client_ca, error) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _unusable(setting: str, path: Path, error: Exception) -> ConfigurationError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return ConfigurationError(f"Setting http.{setting}: {path} cannot be used: {reason}")


def is_authenticated(host: ServerHost) -> bool:
    """Whether requests need a token."""
    return host.settings.auth.is_used or host.roles.token_verifier is not None


def prepare(host: ServerHost) -> None:
    """Check, before the server starts, its address, certificate and token verification.

    Raises ConfigurationError if the server would be open to strangers or one of these cannot be used.
    """
    check_exposure(host, host.settings.http.host)
    tls_context(host.settings.http)
    if is_authenticated(host):
        from axolotl_server.authentication.assembly import make_gate

        make_gate(host.settings.auth, host.roles.token_verifier)


def check_exposure(host: ServerHost, address: str) -> None:
    """Raise ConfigurationError if other machines can reach the address without authentication."""
    http = host.settings.http
    if is_loopback(address) or is_authenticated(host) or http.tls_client_ca is not None or http.allow_unauthenticated:
        return
    raise ConfigurationError(
        f"Anyone who can reach {address or 'this machine'} could use this server. Configure auth (issuers, "
        "introspection_url or api_keys) or http.tls_client_ca, or listen on 127.0.0.1. If a proxy in front of the "
        "server authenticates its users, set http.allow_unauthenticated = true"
    )


@overload
def make_app(target: ServerHost) -> HttpApp: ...


@overload
def make_app(
    target: "Target",
    *,
    settings: Mapping[str, Any] | str | Path | None = None,
    profile: str | None = None,
    toolsets: Sequence[str] = (),
    principal: "PrincipalOf | None" = None,
) -> "MountedApp": ...


def make_app(
    target: "ServerHost | Target",
    *,
    settings: Mapping[str, Any] | str | Path | None = None,
    profile: str | None = None,
    toolsets: Sequence[str] = (),
    principal: "PrincipalOf | None" = None,
) -> "HttpApp | MountedApp":
    """Make an ASGI application of a container, to be mounted in another one or served alone.

    The application around it runs its `lifespan`. `target` is a container, its class, or where it is, such as
    `shop.container:Container`. `settings` is the path of a settings file or has the form of one; without it, the file
    of the project is read. `principal` finds the principal of a request in its ASGI scope, if the application around it
    authenticates requests; None refuses a request with 401.

    For a `ServerHost` that has started, this makes the application alone, without a lifespan and without options.
    """
    if isinstance(target, ServerHost):
        return _app_of(target)
    from axolotl_server.http.mounting import MountedApp

    return MountedApp(_app_of, target, settings=settings, profile=profile, toolsets=toolsets, principal=principal)


def _app_of(host: ServerHost) -> HttpApp:
    health = _health_of(host)
    gate = _gate_of(host, health)
    console = _console_of(host, gate)
    routes = _routes_of(host, health) | ({} if console is None else console.by_path())
    kind = _kind_of(host)
    routing = Routing(gate, routes)
    app = kind(host.handler, host.settings, host.roles.event_store, routing, redis=host.redis)
    host.on_stop(app.sessions.close)
    if health is not None and app.sessions.shared:
        from axolotl_server.health import StoreCheck

        health.add(StoreCheck("session_store", app.sessions.ping))
    if console is not None:
        console.sessions = app.sessions
    if host.observation is not None:
        host.observation.watch_refusals(app.refused)
    return app


def _kind_of(host: ServerHost) -> type[HttpApp]:
    """Choose the application with CORS only if there are allowed origins."""
    if not host.settings.http.allowed_origins:
        return HttpApp
    from axolotl_server.http.cross_origin import CrossOriginApp

    return CrossOriginApp


def _console_of(host: ServerHost, gate: IAuthenticator | None) -> "ConsoleRoutes | None":
    if host.console is None:
        return None
    from axolotl_server.console.routes import ConsoleRoutes

    return ConsoleRoutes(host, host.console, gate)


def _health_of(host: ServerHost) -> "Health | None":
    if not host.settings.health.enabled:
        return None
    from axolotl_server.health import make_health

    return make_health(host)


def _gate_of(host: ServerHost, health: "Health | None") -> IAuthenticator | None:
    if host.authenticator is not None or not is_authenticated(host):
        return host.authenticator
    from axolotl_server.authentication.assembly import make_gate

    rejections = None if host.audit is None else host.audit.rejections
    made = make_gate(
        host.settings.auth,
        host.roles.token_verifier,
        ClientAddresses(host.settings.http.trusted_proxies),
        None if rejections is None else rejections.add,
    )
    host.on_stop(made.close)
    if health is not None:
        _watch_verifier(made, health)
    return made.gate


def _watch_verifier(made: "MadeGate", health: "Health") -> None:
    from axolotl_server.health import OutageCheck, StoreCheck

    if made.ping is not None:
        health.add(StoreCheck("issuer_keys", made.ping))
    elif made.depends_on_others:
        problem = "tokens cannot be verified"
        health.add(OutageCheck("token_verifier", lambda: problem if made.gate.has_failed else None))


def _routes_of(host: ServerHost, health: "Health | None") -> dict[str, Route]:
    routes: dict[str, Route] = {}
    if host.observation is not None and host.observation.page is not None:
        routes[METRICS_PATH] = Route(host.observation.page.serve, is_open=True)
    if is_authenticated(host):
        from axolotl_server.authentication.gate import metadata_routes

        routes |= metadata_routes(host.settings)
    if health is not None:
        from axolotl_server.health import health_routes

        routes |= health_routes(health, host.settings.health)
    return routes
