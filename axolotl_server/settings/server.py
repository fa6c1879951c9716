"""Everything an operator can set, in sections; units stand in the names."""

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

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
from axolotl_server.settings.transports import HealthSettings, HttpSettings, SessionSettings, StdioSettings


def _own_version() -> str:
    try:
        return version("axolotl-mcp")
    except PackageNotFoundError:
        return "0"


class ServerIcon(Section):
    """A picture that clients may show beside the server's name."""

    src: str = Field(pattern=r"^(https:|data:)")
    """The picture, as an `https:` or `data:` URI."""
    mime_type: str | None = None
    """Its type, as `image/png`."""
    sizes: tuple[str, ...] | None = None
    """The sizes it is made for, as `48x48`."""
    theme: Literal["light", "dark"] | None = None
    """On which background it is shown."""


class ServerIdentity(Section):
    """What the server says of itself; revisions that have no place for something are not told it."""

    name: str = "axolotl"
    """The name that clients see."""
    version: str = Field(default_factory=_own_version)
    """The version that clients see."""
    title: str | None = None
    """The name that people see."""
    description: str | None = None
    """What the server is for."""
    website_url: str | None = None
    """Where to read more."""
    icons: tuple[ServerIcon, ...] = ()
    """Pictures that clients may show."""
    instructions: str | None = None
    """How a model should use the server as a whole."""


class LogSettings(Section):
    """How the log is written; it goes to the standard error stream in any case."""

    format: Literal["console", "json"] = "console"
    """Lines for people, or one JSON object a line."""
    subject: bool = False
    """Whether JSON lines about a call name the subject of its principal."""


class TelemetrySettings(Section):
    """What is sent by OpenTelemetry; where to, the standard `OTEL_*` variables say."""

    traces: bool = False
    """Whether every operation is a span."""
    metrics: bool = False
    """Whether numbers are sent."""
    flush_seconds: float = Field(2.0, ge=0)
    """How long the end of the server waits until everything is sent."""


class MetricsSettings(Section):
    """The page that Prometheus reads, over HTTP."""

    enabled: bool = False
    """Whether there is such a page."""
    path: str = Field("/metrics", pattern=r"^/")
    """Where it is."""


class ConsoleSettings(Section):
    """The page at `/console`, which `axolotl dev` has and a server in production has not."""

    enabled: bool = False
    """Whether the page is served, to the machine itself and to nobody else."""
    recent_calls: int = Field(500, ge=1, le=10_000)
    """How many calls the server remembers for a page that is opened later."""
    show_arguments: bool = False
    """Whether arguments are shown, without what is sensitive."""


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
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LOWER_CASE] = "info"
    """The least important messages that are logged, on the standard error stream."""

    @model_validator(mode="after")
    def _check_health_paths(self) -> Self:
        messages = None if self.http.sse_path is None else f"{self.http.sse_path.rstrip('/')}/messages"
        metrics = self.metrics.path if self.metrics.enabled else None
        for path in self.health.paths:
            if path in (self.http.path, self.http.sse_path, messages, metrics):
                raise ValueError(f"health: {path} leads elsewhere already, see http and metrics; choose another path")
        return self
