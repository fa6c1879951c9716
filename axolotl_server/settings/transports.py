"""The sections `health`, `http`, `stdio` and `sessions` of the settings."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, SecretStr, model_validator

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.settings.policies import PrincipalSettings
from axolotl_server.settings.section import Section

LIVE_PATH: Final = "/livez"
"""The path of the liveness probe."""
READY_PATH: Final = "/readyz"
"""The path of the readiness probe."""
STARTUP_PATH: Final = "/startupz"
"""The path of the startup probe."""
HEALTH_PATH: Final = "/health"
"""The path of the endpoint that shows all checks."""
METRICS_PATH: Final = "/metrics"
"""The path of the Prometheus endpoint."""


def _check_network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; write an address or a network, such as 192.0.2.1 or 10.0.0.0/8") from None
    return text


_Network: TypeAlias = Annotated[str, AfterValidator(_check_network)]


class HealthSettings(Section):
    """The health endpoints of an HTTP server: `/livez`, `/readyz`, `/startupz` and `/health`."""

    enabled: bool = True
    """Whether to serve health endpoints."""
    details: bool = False
    """Whether responses include the reason why a check failed. The log always has it."""


class HttpSettings(Section):
    """The Streamable HTTP endpoint."""

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(8000, ge=0, le=65535)
    """The port to listen on. 0 picks a free port."""
    path: str = Field("/mcp", pattern=r"^/")
    """The path of the endpoint. It starts with a slash."""
    sse_path: str | None = Field(None, pattern=r"^/")
    """The path of the deprecated HTTP+SSE transport. Off unless set."""
    allowed_hosts: tuple[str, ...] = ()
    """`Host` names that are accepted besides loopback names, `http.host` and the host of `auth.resource`."""
    allow_any_host: bool = False
    """Whether `http.allowed_hosts` may contain `*`, which turns off the protection against DNS rebinding."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may use the server, such as `https://app.example.com`, besides loopback ones."""
    trusted_proxies: tuple[_Network, ...] = Field((), max_length=1000)
    """Addresses and networks of proxies whose `Forwarded` or `X-Forwarded-For` header names the client."""
    allow_unauthenticated: bool = False
    """Whether a server without authentication may listen on addresses other than localhost, or be mounted."""
    tls_certificate: Path | None = None
    """A PEM file with the certificate and its chain. Turns on HTTPS."""
    tls_key: Path | None = None
    """The private key of the certificate, if it is not in the same file."""
    tls_key_password: SecretStr | None = None
    """The password of the private key."""
    tls_client_ca: Path | None = None
    """A PEM file with the authorities that sign client certificates. If set, clients need a certificate (mutual
    TLS)."""
    request_timeout_seconds: PositiveFloat = 30.0
    """How long a client may take to send the body of a request, and its headers, which have at most 10 seconds."""
    idle_timeout_seconds: PositiveFloat = 30.0
    """How long a connection may stay open between two requests."""
    max_connections: PositiveInt = 10_000
    """The maximum number of open connections, at most four fifths of the file descriptor limit. Others get 503."""
    max_buffer_bytes: PositiveInt = 64 * 1024 * 1024
    """The maximum size of all bodies together that are incomplete or wait for another reply; of all bodies above 64 KiB
    of running requests, half of it for one caller; of all unread responses; and of all events that wait for clients
    that do not read."""
    keep_alive_seconds: PositiveFloat = 15.0
    """The interval of keep-alive comments on idle event streams. A call that has sent nothing for this long switches to
    an event stream."""
    workers: PositiveInt = 1
    """How many processes serve the address. Cannot be set in the container."""
    worker_timeout_seconds: PositiveFloat | None = 30.0
    """How long the event loop of a worker may be blocked before the worker is killed and replaced. null means
    forever."""
    drain_delay_seconds: float = Field(0.0, ge=0)
    """How long a graceful shutdown still accepts new calls, while `/readyz` returns 503."""
    drain_seconds: float = Field(25.0, ge=0)
    """How long running calls have to finish after that, before they are stopped."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.sse_path is not None and self.path in (self.sse_path, f"{self.sse_path.rstrip('/')}/messages"):
            raise ValueError("sse_path must differ from path")
        if self.sse_path is not None and self.workers > 1:
            raise ValueError("sse_path needs workers = 1, because the same process must serve both of its endpoints")
        if "*" in self.allowed_hosts and not self.allow_any_host:
            raise ValueError("allowed_hosts contains *, which accepts every Host header: set allow_any_host = true too")
        others = [name for name in ("tls_key", "tls_key_password", "tls_client_ca") if getattr(self, name) is not None]
        if others and self.tls_certificate is None:
            raise ValueError(f"{others[0]} needs tls_certificate")
        return self


class StdioSettings(Section):
    """The stdio transport."""

    principal: PrincipalSettings | None = None
    """The principal of the client. Anonymous unless set."""

    @property
    def caller(self) -> Principal:
        """The principal of the client."""
        return ANONYMOUS if self.principal is None else self.principal.principal


class SessionSettings(Section):
    """Sessions of HTTP clients that use the handshake."""

    maximum: PositiveInt = 1000
    """How many sessions may exist at once, including HTTP+SSE streams."""
    idle_seconds: PositiveFloat = 600.0
    """How long a session may be idle before it ends."""
    resumable: Literal["off", "streams", "replies"] = "streams"
    """What is kept for clients that lose their connection: nothing, the messages of event streams, or also every reply,
    which is then sent as an event."""
    max_total_event_bytes: PositiveInt = 64 * 1024 * 1024
    """How many bytes of messages are kept for all sessions, in memory or in a directory. In memory, the
    caller with the most loses the oldest ones of its largest session; in a directory, the session with the most."""
    directory: Path | None = None
    """A directory in which the processes of one machine share sessions."""
