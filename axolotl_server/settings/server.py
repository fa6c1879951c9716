"""All settings of a server, and the sections about the server itself."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from axolotl_core._version import __version__
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.settings.calls import (
    ApprovalSettings,
    CachingSettings,
    IdempotencySettings,
    LimitSettings,
    ProtocolSettings,
    SubscriptionSettings,
    TaskSettings,
    ToolsetOverrides,
    ToolsSettings,
)
from axolotl_server.settings.policies import AuditSettings, AuthorizationSettings, QuotaSettings
from axolotl_server.settings.section import LOWER_CASE, Section
from axolotl_server.settings.transports import (
    HEALTH_PATH,
    LIVE_PATH,
    READY_PATH,
    STARTUP_PATH,
    HealthSettings,
    HttpSettings,
    SessionSettings,
    StdioSettings,
)

COMMON: Final = frozenset(
    {
        *("log_level", "log.format", "metrics.enabled", "telemetry.traces"),
        *("server.name", "server.instructions", "stdio.principal"),
        *("http.host", "http.port", "http.allowed_hosts", "http.trusted_proxies", "http.workers", "http.drain_seconds"),
        *("limits.timeout_seconds", "limits.max_concurrency", "quotas.rules"),
        *("redis.url", "tasks.url", "protocol.state_keys"),
        *("auth.resource", "auth.issuers", "auth.api_keys", "authorization.default", "authorization.rules"),
        "audit.jsonl_path",
    }
)
"""The settings that operators set; most servers need no others."""


class ServerIcon(Section):
    """An icon that clients can show next to the name of the server."""

    src: str = Field(pattern=r"^(https:|data:)")
    """The image, as an `https:` or `data:` URI."""
    mime_type: str | None = None
    """The MIME type, such as `image/png`."""
    sizes: tuple[str, ...] | None = None
    """The sizes of the image, such as `48x48`."""
    theme: Literal["light", "dark"] | None = None
    """The background for which the icon is made."""


class ServerIdentity(Section):
    """How the server describes itself to clients."""

    name: str = "axolotl"
    """The name that clients see."""
    version: str = __version__
    """The version that clients see."""
    title: str | None = None
    """The name for display."""
    description: str | None = None
    """The purpose of the server."""
    website_url: str | None = None
    """A website with more information."""
    icons: tuple[ServerIcon, ...] = ()
    """Icons that clients can show."""
    instructions: str | None = None
    """Instructions for models that use the server."""


class RedisSettings(Section):
    """The Redis server in which workers and replicas share sessions, quotas and the results of idempotent calls."""

    url: SecretStr | None = None
    """The URL of Redis, which begins with `redis://`, `rediss://` or `unix://`. Without it, each process keeps its own
    quotas and results, and the sessions of one machine are shared in files."""
    prefix: str = "axolotl:"
    """The prefix of all keys and channels. Servers with the same prefix share sessions, quotas and results."""


class LogSettings(Section):
    """The format of the log, which is written to stderr."""

    format: Literal["console", "json"] = "console"
    """Lines for people, or one JSON object per line."""
    subject: bool = False
    """Whether JSON lines about a call include the subject of the caller."""
    levels: dict[str, Annotated[Literal["debug", "info", "warning", "error"], LOWER_CASE]] = Field({})
    """The levels of individual loggers, such as `acme = "debug"`. Loggers of HTTP clients default to `warning`."""


class TelemetrySettings(Section):
    """OpenTelemetry. Exporters are configured with the standard `OTEL_*` variables."""

    traces: bool = False
    """Whether to record a span for every request."""
    metrics: bool = False
    """Whether to send metrics."""
    logs: bool = False
    """Whether to send log records, with the trace and the call that they belong to."""


class MetricsSettings(Section):
    """The Prometheus endpoint at `/metrics`."""

    enabled: bool = False
    """Whether to serve metrics."""


class ConsoleSettings(Section):
    """The web console at `/console`, for development."""

    enabled: bool = False
    """Whether to serve the console, on localhost only."""
    token: SecretStr | None = Field(None, min_length=16)
    """The token in the link to the console. Random unless set."""
    show_arguments: bool = False
    """Whether to show arguments, except sensitive ones."""


class ServerSettings(Section):
    """The settings of a server. `load_settings` reads them from files and the environment."""

    server: ServerIdentity = Field(default_factory=ServerIdentity.model_construct)
    http: HttpSettings = Field(default_factory=HttpSettings.model_construct)
    stdio: StdioSettings = Field(default_factory=StdioSettings.model_construct)
    sessions: SessionSettings = Field(default_factory=SessionSettings.model_construct)
    redis: RedisSettings = Field(default_factory=RedisSettings.model_construct)
    limits: LimitSettings = Field(default_factory=LimitSettings.model_construct)
    protocol: ProtocolSettings = Field(default_factory=ProtocolSettings.model_construct)
    caching: CachingSettings = Field(default_factory=CachingSettings.model_construct)
    subscriptions: SubscriptionSettings = Field(default_factory=SubscriptionSettings.model_construct)
    tasks: TaskSettings = Field(default_factory=TaskSettings.model_construct)
    health: HealthSettings = Field(default_factory=HealthSettings.model_construct)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings.model_construct)
    audit: AuditSettings = Field(default_factory=AuditSettings.model_construct)
    auth: AuthSettings = Field(default_factory=AuthSettings.model_construct)
    authorization: AuthorizationSettings = Field(default_factory=AuthorizationSettings.model_construct)
    approval: ApprovalSettings = Field(default_factory=ApprovalSettings.model_construct)
    idempotency: IdempotencySettings = Field(default_factory=IdempotencySettings.model_construct)
    console: ConsoleSettings = Field(default_factory=ConsoleSettings.model_construct)
    tools: ToolsSettings = Field(default_factory=ToolsSettings.model_construct)
    toolsets: dict[str, ToolsetOverrides] = Field(default_factory=dict)
    log: LogSettings = Field(default_factory=LogSettings.model_construct)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings.model_construct)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings.model_construct)
    extensions: dict[str, Any] = Field(default_factory=dict)
    """The sections of extensions of your own, each by the name that the extension gives it."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LOWER_CASE] = "info"
    """The lowest level that is logged."""

    @model_validator(mode="after")
    def _check_sections(self) -> Self:
        """Refuse values that are valid in their sections, but not together."""
        messages = None if self.http.sse_path is None else f"{self.http.sse_path.rstrip('/')}/messages"
        used = (self.http.path, self.http.sse_path, messages)
        health = (LIVE_PATH, READY_PATH, STARTUP_PATH, HEALTH_PATH) if self.health.enabled else ()
        for path in health:
            if path in used:
                raise ValueError(f"http: {path} is a path of the health endpoints; choose another path")
        return self
