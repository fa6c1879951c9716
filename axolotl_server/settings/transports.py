"""Everything an operator can set, in sections; units stand in the names."""

from pathlib import Path
from typing import Annotated, Self, TypeAlias

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr, model_validator

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.settings.policies import PrincipalSettings
from axolotl_server.settings.section import Section

_Path: TypeAlias = Annotated[str, Field(pattern=r"^(/[^?#\s]*)?$")]


class HealthSettings(Section):
    """The routes for probes, over HTTP; an empty path switches one off."""

    enabled: bool = True
    """Whether there are any routes for probes."""
    live_path: _Path = "/livez"
    """Where a probe asks whether the process should be left running."""
    ready_path: _Path = "/readyz"
    """Where a probe asks whether calls may come."""
    startup_path: _Path = "/startupz"
    """Where a probe asks whether the server has started."""
    path: _Path = "/health"
    """Where everything is shown together."""
    cache_seconds: float = Field(1.0, ge=0)
    """How long the finding of a check holds, however often it is asked for."""
    details: bool = False
    """Whether everybody who can reach the routes may read why a check is not well; the log says it in any case."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that are served."""
        paths = (self.live_path, self.ready_path, self.startup_path, self.path)
        return tuple(filter(None, paths)) if self.enabled else ()

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if len(set(self.paths)) != len(self.paths):
            raise ValueError("live_path, ready_path, startup_path and path must lead to different places")
        return self


class HttpSettings(Section):
    """The Streamable HTTP endpoint."""

    host: str = "127.0.0.1"
    """The address to listen at."""
    port: int = Field(8000, ge=0, le=65535)
    """The port; 0 takes a free one."""
    path: str = Field("/mcp", pattern=r"^/")
    """The path of the endpoint; begins with a slash."""
    sse_path: str | None = Field(None, pattern=r"^/")
    """Where clients of the first revision find its transport with two endpoints; nowhere unless it is set."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in the Host header that are accepted besides the loopback names and the address bound to."""
    allow_any_host: bool = False
    """Whether `*` may be one of them, which lets every page reach the server that knows its address."""
    allowed_origins: tuple[str, ...] = ()
    """Origins that are accepted besides the loopback ones, as `https://app.example.com`; their pages may read."""
    allow_unauthenticated: bool = False
    """Whether the server may listen where others can reach it without asking who they are."""
    tls_certificate: Path | None = None
    """The certificate with its chain, in a PEM file; with one, the server speaks HTTPS."""
    tls_key: Path | None = None
    """The key of the certificate, where it is not in the same file."""
    tls_key_password: SecretStr | None = None
    """The password of that key."""
    tls_client_ca: Path | None = None
    """Who must have signed the certificates of clients, which need one then."""
    header_timeout_seconds: PositiveFloat = 10.0
    """How long a client may take to send the head of a request."""
    body_timeout_seconds: PositiveFloat = 30.0
    """How long a client may take to send the rest of a request that it began."""
    watch_after_seconds: PositiveFloat = 0.05
    """When a running call starts to look for its caller's disconnection."""
    keep_alive_seconds: PositiveFloat = 15.0
    """How often an idle event stream gets a comment, so that proxies keep it open."""
    workers: PositiveInt = 1
    """How many processes serve the address; said by a flag, the environment or the file, never by the container."""
    worker_timeout_seconds: PositiveFloat | None = 30.0
    """When a worker whose event loop does not respond is killed and replaced; null waits forever."""
    drain_delay_seconds: float = Field(0.0, ge=0)
    """How long calls are still taken after the server was told to stop, while it says that it is not ready."""
    drain_seconds: float = Field(25.0, ge=0)
    """How long running calls have to end after that."""

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if self.sse_path is not None and self.path in (self.sse_path, f"{self.sse_path.rstrip('/')}/messages"):
            raise ValueError("sse_path must lead elsewhere than path")
        if self.sse_path is not None and self.workers > 1:
            raise ValueError("sse_path needs workers = 1: both its endpoints must lead to the same process")
        return self

    @model_validator(mode="after")
    def _check_hosts(self) -> Self:
        if "*" in self.allowed_hosts and not self.allow_any_host:
            raise ValueError("allowed_hosts has *, which switches the check of Host off: say allow_any_host = true too")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        others = [name for name in ("tls_key", "tls_key_password", "tls_client_ca") if getattr(self, name) is not None]
        if others and self.tls_certificate is None:
            raise ValueError(f"{others[0]} needs tls_certificate")
        return self


class StdioSettings(Section):
    """The standard streams."""

    drain_seconds: float = Field(5.0, ge=0)
    """How long calls may go on after the client closed its end."""
    principal: PrincipalSettings | None = None
    """On whose behalf the client acts: whoever starts the process; anonymous where it is not said."""

    @property
    def caller(self) -> Principal:
        """On whose behalf the client acts."""
        return ANONYMOUS if self.principal is None else self.principal.principal


class SessionSettings(Section):
    """Sessions of HTTP clients that use the handshake."""

    maximum: PositiveInt = 1000
    """How many sessions may live at once; a stream of the first revision's transport counts as one."""
    idle_seconds: PositiveFloat = 600.0
    """When a session that nobody uses ends."""
    resumable: bool = True
    """Whether messages are kept for clients that lose their connection."""
    stream_replies: bool = False
    """Whether every reply is an event, so that one that got lost can be fetched again too."""
    max_events: PositiveInt = 1000
    """How many messages are kept of each session; the oldest are dropped."""
    max_event_bytes: PositiveInt = 4 * 1024 * 1024
    """How many bytes of messages are kept of each session."""
    retry_seconds: PositiveFloat = 1.0
    """When a client that was sent away should come back."""
    directory: Path | None = None
    """Where the processes of one machine share sessions; `axolotl dev` makes one, so that changes end no session."""
    redis_url: SecretStr | None = None
    """Where workers and replicas share sessions, with the messages that are kept of them; else each has its own."""
    redis_prefix: str = "axolotl:session:"
    """How keys and channels in Redis begin."""
    redis_connections: PositiveInt = 20
    """How many connections a process opens at most."""
    store_timeout_seconds: PositiveFloat = 1.0
    """How long a request waits for Redis before it is answered with 503."""
