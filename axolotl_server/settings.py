"""Everything an operator can set, in sections; units stand in the names."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    model_validator,
)

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.levels import LogLevel
from axolotl_server.audit.settings import AuditSettings
from axolotl_server.authorization.settings import AuthorizationSettings, PrincipalSettings
from axolotl_server.console.settings import ConsoleSettings
from axolotl_server.health.settings import HealthSettings
from axolotl_server.identity.settings import AuthSettings
from axolotl_server.observation.settings import LogSettings, MetricsSettings, TelemetrySettings
from axolotl_server.quotas.settings import QuotaSettings
from axolotl_server.settings_resilience import ApprovalSettings, IdempotencySettings
from axolotl_server.settings_section import Section
from axolotl_server.settings_server import ServerIcon, ServerIdentity
from axolotl_server.tool_settings import ToolsetOverrides, ToolsSettings

__all__ = [
    "CachingSettings",
    "HttpSettings",
    "LimitSettings",
    "ProtocolSettings",
    "ServerIcon",
    "ServerIdentity",
    "ServerSettings",
    "SessionSettings",
    "StdioSettings",
    "SubscriptionSettings",
    "TaskSettings",
]


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


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


class LimitSettings(Section):
    """What holds for every call unless a tool says otherwise."""

    timeout_seconds: PositiveFloat = 30.0
    """The deadline of a call, unless the tool or `tools.<name>` has its own."""
    max_timeout_seconds: PositiveFloat = 300.0
    """How far progress may move a deadline, for tools that let it, whatever they say themselves."""
    cancel_grace_seconds: float = Field(0.02, ge=0, le=0.04)
    """How long a call that was stopped may take to end before its caller is answered without it."""
    max_inflight: PositiveInt = 10_000
    """How many calls may run or wait at once; more are refused and may be tried again."""
    max_concurrency: PositiveInt | None = None
    """How many calls run at once in the whole server, any number unless it is set; the others wait or are refused."""
    queue_limit: int = Field(0, ge=0)
    """How many calls wait for a place, for each limit that has none left."""
    queue_timeout_seconds: PositiveFloat = 1.0
    """How long they wait before they are refused."""
    max_result_bytes: PositiveInt = 4 * 1024 * 1024
    """The largest result; a larger one is an error."""
    max_message_bytes: PositiveInt = 4 * 1024 * 1024
    """The largest HTTP body, and the longest line on stdio."""
    threads: PositiveInt = 40
    """How many tools may run in threads at once, in each `pool`; more wait, under their deadline."""
    loop_stall_seconds: PositiveFloat | None = 0.25
    """When code that blocks the event loop is logged with its stack; null leaves it alone."""
    processes: PositiveInt = 4
    """How many worker processes a tool with `execution = "process"` has at most, or a group of such tools."""
    max_process_bytes: PositiveInt | None = None
    """How much memory a worker process may have."""
    ask_timeout_seconds: PositiveFloat = 300.0
    """How long a call waits for an answer of its user; its own deadline stands still meanwhile."""
    close_seconds: PositiveFloat = 5.0
    """How long everything may take to close after a signal and the time for running calls; then the process ends."""


class ProtocolSettings(Section):
    """Choices the protocol leaves open."""

    page_size: PositiveInt = 1000
    """How many entries a page of a list has."""
    unknown_tool: Literal["by_revision", "method_not_found", "invalid_params"] = "by_revision"
    """The code for a tool that is not there."""
    invalid_arguments: Literal["by_revision", "error", "result"] = "by_revision"
    """Whether wrong arguments are an error, or a result that the model reads."""
    require_initialized: bool = True
    """Whether a client must confirm the handshake before it may use tools."""
    state_keys: tuple[SecretStr, ...] = ()
    """Secrets of at least 16 characters that seal what a client carries between the rounds of a request: the first
    seals, all open; without any, each process makes its own."""
    state_ttl_seconds: PositiveFloat = 600.0
    """How long a client may take from one round of a request to the next."""
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = "info"
    """From which level on a client with a handshake gets log messages before it says what it wants."""
    log_messages_per_second: PositiveFloat = 100.0
    """How many log messages a call may send its client; more are dropped."""
    progress_per_second: PositiveFloat = 20.0
    """How many progress notifications a call may send; more are held back, and the latest is sent."""


class CachingSettings(Section):
    """How long clients of the stateless revision may keep lists and what they read."""

    list_ttl_seconds: float = Field(0.0, ge=0)
    """For how long clients may keep lists."""
    resource_ttl_seconds: float = Field(0.0, ge=0)
    """For how long they may keep resources that do not say it themselves."""
    scope: Literal["private", "public"] = "private"
    """Whether a cache may hand an answer to other callers, where it does not depend on who asked."""


class SubscriptionSettings(Section):
    """Clients that want to hear of changes."""

    maximum: PositiveInt = 1000
    """How many `subscriptions/listen` streams may be open at once."""
    maximum_resources: PositiveInt = 1000
    """How many resources one client may watch."""


class TaskSettings(Section):
    """Calls that run as tasks, for tools that let them."""

    maximum: PositiveInt = 1000
    """How many tasks are kept at once."""
    ttl_seconds: PositiveFloat = 3600.0
    """How long a task, and its result, is kept after it began."""
    poll_interval_seconds: PositiveFloat = 1.0
    """How often a client should look at a task."""


class ServerSettings(Section):
    """The settings of a server; it takes what it is given and looks nowhere else, `load_settings` does."""

    server: ServerIdentity = Field(default_factory=ServerIdentity)
    http: HttpSettings = Field(default_factory=HttpSettings)
    stdio: StdioSettings = Field(default_factory=StdioSettings)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    protocol: ProtocolSettings = Field(default_factory=ProtocolSettings)
    caching: CachingSettings = Field(default_factory=CachingSettings)
    subscriptions: SubscriptionSettings = Field(default_factory=SubscriptionSettings)
    tasks: TaskSettings = Field(default_factory=TaskSettings)
    health: HealthSettings = Field(default_factory=HealthSettings)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)
    authorization: AuthorizationSettings = Field(default_factory=AuthorizationSettings)
    approval: ApprovalSettings = Field(default_factory=ApprovalSettings)
    idempotency: IdempotencySettings = Field(default_factory=IdempotencySettings)
    console: ConsoleSettings = Field(default_factory=ConsoleSettings)
    tools: ToolsSettings = Field(default_factory=ToolsSettings)
    toolsets: dict[str, ToolsetOverrides] = Field(default_factory=dict)
    log: LogSettings = Field(default_factory=LogSettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    """The least important messages that are logged, on the standard error stream."""

    @model_validator(mode="after")
    def _check_health_paths(self) -> Self:
        messages = None if self.http.sse_path is None else f"{self.http.sse_path.rstrip('/')}/messages"
        metrics = self.metrics.path if self.metrics.enabled else None
        for path in self.health.paths:
            if path in (self.http.path, self.http.sse_path, messages, metrics):
                raise ValueError(f"health: {path} leads elsewhere already, see http and metrics; choose another path")
        return self
