"""The HTTP application of a server, built from its settings and roles, with CORS for web pages of other origins."""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from axolotl_core.errors import ConfigurationError
from axolotl_server.health import Health, OutageCheck, StoreCheck, health_routes
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.http.asgi import (
    Headers,
    HttpRefusal,
    IAuthenticator,
    Message,
    Receive,
    Route,
    Scope,
    Send,
    send_empty,
    send_refusal,
)
from axolotl_server.http.client_address import ClientAddresses
from axolotl_server.settings.transports import METRICS_PATH, HttpSettings
from axolotl_server.urls import is_loopback

_ALLOW_ORIGIN: Final = b"access-control-allow-origin"
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
_KNOWN: Final = frozenset(
    {b"accept", b"authorization", b"baggage", b"content-type", b"last-event-id", b"traceparent", b"tracestate"}
)
_PROTOCOL_HEADER: Final = re.compile(rb"mcp-[!#$%&'*+.^_`|~0-9a-z-]+")
_METHODS: Final = (b"access-control-allow-methods", b"GET, POST, DELETE")
_MAX_AGE: Final = (b"access-control-max-age", b"3600")
_MAX_NAMES: Final = 100


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
        from axolotl_server.access.verifiers import make_gate

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


def make_app(host: ServerHost) -> HttpApp:
    """Make the ASGI application of a host that has started, without a lifespan."""
    health = Health(host) if host.settings.health.enabled else None
    gate = _gate_of(host, health)
    routes = _routes_of(host, health)
    for extension in host.assembly.extensions:
        for path, route in extension.routes(gate, lambda: app.sessions).items():
            if path in (host.settings.http.path, host.settings.http.sse_path, *routes):
                raise ConfigurationError(f"The extension {extension.identifier} serves {path}, which is already in use")
            routes[path] = route
    kind = CrossOriginApp if host.settings.http.allowed_origins else HttpApp
    redis = host.assembly.redis
    app = kind(host.handler, host.settings, host.roles.event_store, gate=gate, routes=routes, redis=redis)
    host.on_stop(app.sessions.close)
    if health is not None and app.sessions.shared:
        health.add(StoreCheck("session_store", app.sessions.ping))
    if host.assembly.observation is not None:
        host.assembly.observation.watch_refusals(app.refused)
    return app


def _gate_of(host: ServerHost, health: Health | None) -> IAuthenticator | None:
    if host.authenticator is not None or not is_authenticated(host):
        return host.authenticator
    from axolotl_server.access.verifiers import make_gate

    rejections = None if host.assembly.audit is None else host.assembly.audit.rejections
    gate, verifier = make_gate(
        host.settings.auth,
        host.roles.token_verifier,
        ClientAddresses(host.settings.http.trusted_proxies),
        None if rejections is None else rejections.add,
    )
    host.on_stop(verifier.close)
    if health is not None and verifier.key_sets:
        health.add(StoreCheck("issuer_keys", verifier.ping))
    elif health is not None and verifier.depends_on_others:
        problem = "tokens cannot be verified"
        health.add(OutageCheck("token_verifier", lambda: problem if gate.has_failed else None))
    return gate


def _routes_of(host: ServerHost, health: Health | None) -> dict[str, Route]:
    routes: dict[str, Route] = {}
    if host.assembly.observation is not None and host.assembly.observation.page is not None:
        routes[METRICS_PATH] = Route(host.assembly.observation.page.serve, is_open=True)
    if is_authenticated(host):
        from axolotl_server.access.gate import metadata_routes

        routes |= metadata_routes(host.settings)
    if health is not None:
        routes |= health_routes(health, host.settings.health)
    return routes


class CrossOriginApp(HttpApp):
    """The application with CORS for the allowed origins; other requests are served as without it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        origin = _origin_of(scope)
        if origin is None or not self.checks.allows_pages_of(origin):
            await super().__call__(scope, receive, send)
        elif scope["method"] == "OPTIONS" and self._serves(scope["path"]):
            await self._answer_preflight(scope, origin, send)
        else:
            await super().__call__(scope, receive, _naming(origin, send))

    def _serves(self, path: str) -> bool:
        return path in (self.path, self._equal_path) or (self._sse is not None and self._sse.serves(path))

    async def _answer_preflight(self, scope: Scope, origin: bytes, send: Send) -> None:
        """Answer which headers and methods a page may send. The token comes with the actual request."""
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        try:
            self.checks.check_source(headers)
            await send_empty(send, 204, [*_named(origin), _METHODS, *_allowed_names(headers), _MAX_AGE])
        except HttpRefusal as refusal:
            await send_refusal(send, refusal)


def _origin_of(scope: Scope) -> bytes | None:
    """Return the origin of a request; None if it names none, or several."""
    if scope["type"] != "http":
        return None
    named: list[bytes] = [value for name, value in scope["headers"] if name == b"origin"]
    return named[0] if len(named) == 1 else None


def _naming(origin: bytes, send: Send) -> Send:
    """Let the page read the response, unless the response itself names who may read it."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start" and all(name != _ALLOW_ORIGIN for name, _ in message["headers"]):
            message["headers"] = [*message["headers"], *_named(origin), _EXPOSED]
        await send(message)

    return send_named


def _named(origin: bytes) -> Headers:
    return [(_ALLOW_ORIGIN, origin), (b"vary", b"Origin")]


def _allowed_names(headers: Mapping[bytes, bytes]) -> Headers:
    """Allow the requested headers that belong to the protocol, among them those that tools define."""
    wanted = (name.strip().lower() for name in headers.get(b"access-control-request-headers", b"").split(b","))
    allowed = [name for name in wanted if name in _KNOWN or _PROTOCOL_HEADER.fullmatch(name)]
    return [(b"access-control-allow-headers", b", ".join(allowed[:_MAX_NAMES]))] if allowed else []
