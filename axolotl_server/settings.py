"""Everything an operator can set, in sections; units stand in the names."""

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.levels import LogLevel
from axolotl_server.audit.settings import AuditSettings
from axolotl_server.authorization.settings import AuthorizationSettings, PrincipalSettings
from axolotl_server.quotas.settings import QuotaSettings
from axolotl_server.settings_resilience import ApprovalSettings, IdempotencySettings
from axolotl_server.settings_section import Section
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


def _own_version() -> str:
    try:
        return version("axolotl-mcp")
    except PackageNotFoundError:
        return "0"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class ServerIcon(Section):
    """A picture that clients may show beside the server's name."""

    src: str = Field(pattern=r"^(https:|data:)")
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


class ServerIdentity(Section):
    """What the server says of itself."""

    name: str = "axolotl"
    version: str = Field(default_factory=_own_version)
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[ServerIcon, ...] = ()
    instructions: str | None = None
    """How a model should use the server as a whole."""


class HttpSettings(Section):
    """The Streamable HTTP endpoint."""

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    path: str = Field("/mcp", pattern=r"^/")
    sse_path: str | None = Field(None, pattern=r"^/")
    """Where clients of the first revision find its transport with two endpoints; nowhere unless it is set."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in the Host header that are accepted besides the loopback names and the address bound to."""
    allowed_origins: tuple[str, ...] = ()
    """Origins that are accepted besides the loopback ones, as `https://app.example.com`."""
    header_timeout_seconds: PositiveFloat = 10.0
    body_timeout_seconds: PositiveFloat = 30.0
    """How long a client may take to send the rest of a request that it began."""
    watch_after_seconds: PositiveFloat = 0.05
    """When a running call starts to look for its caller's disconnection."""
    keep_alive_seconds: PositiveFloat = 15.0
    """How often an idle event stream gets a comment, so that proxies keep it open."""
    drain_seconds: float = Field(25.0, ge=0)

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if self.sse_path is not None and self.path in (self.sse_path, f"{self.sse_path.rstrip('/')}/messages"):
            raise ValueError("sse_path must lead elsewhere than path")
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
    idle_seconds: PositiveFloat = 600.0
    resumable: bool = True
    """Whether messages are kept for clients that lose their connection."""
    stream_replies: bool = False
    """Whether every reply is an event, so that one that got lost can be fetched again too."""
    max_events: PositiveInt = 1000
    max_event_bytes: PositiveInt = 4 * 1024 * 1024
    """How much is kept of each session."""
    retry_seconds: PositiveFloat = 1.0
    """When a client that was sent away should come back."""


class LimitSettings(Section):
    """What holds for every call unless a tool says otherwise."""

    timeout_seconds: PositiveFloat = 30.0
    max_timeout_seconds: PositiveFloat = 300.0
    """How far progress may move a deadline, for tools that let it, whatever they say themselves."""
    cancel_grace_seconds: float = Field(0.02, ge=0, le=0.04)
    """How long a call that was stopped may take to end before its caller is answered without it."""
    max_inflight: PositiveInt = 10_000
    max_concurrency: PositiveInt | None = None
    """How many calls run at once in the whole server; the others wait or are refused."""
    queue_limit: int = Field(0, ge=0)
    queue_timeout_seconds: PositiveFloat = 1.0
    """How many calls wait for a place, and how long, where the number of running calls is limited."""
    max_result_bytes: PositiveInt = 4 * 1024 * 1024
    """The largest result; a larger one is an error."""
    max_message_bytes: PositiveInt = 4 * 1024 * 1024
    """The largest HTTP body, and the longest line on stdio."""
    threads: PositiveInt = 40
    """How many tools with `execution = "thread"` run at once."""
    loop_stall_seconds: PositiveFloat | None = 0.25
    """When code that blocks the event loop is logged with its stack; null leaves it alone."""
    processes: PositiveInt = 4
    """How many worker processes a tool with `execution = "process"` has at most, or a group of such tools."""
    max_process_bytes: PositiveInt | None = None
    """How much memory a worker process may have."""
    ask_timeout_seconds: PositiveFloat = 300.0
    """How long a call waits for an answer of its user; its own deadline stands still meanwhile."""


class ProtocolSettings(Section):
    """Choices the protocol leaves open."""

    page_size: PositiveInt = 1000
    unknown_tool: Literal["by_revision", "method_not_found", "invalid_params"] = "by_revision"
    invalid_arguments: Literal["by_revision", "error", "result"] = "by_revision"
    require_initialized: bool = True
    """Whether a client must confirm the handshake before it may use tools."""
    state_keys: tuple[SecretStr, ...] = ()
    """The secrets that seal what a client carries between the rounds of a request: the first seals, all open."""
    state_ttl_seconds: PositiveFloat = 600.0
    """How long a client may take from one round of a request to the next."""
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = "info"
    """From which level on a client with a handshake gets log messages before it says what it wants."""
    log_messages_per_second: PositiveFloat = 100.0
    progress_per_second: PositiveFloat = 20.0
    """How many notifications a call may send; the first, and progress that is complete, always leave."""


class CachingSettings(Section):
    """How long clients of the stateless revision may keep lists and what they read."""

    list_ttl_seconds: float = Field(0.0, ge=0)
    resource_ttl_seconds: float = Field(0.0, ge=0)
    """For resources that do not say it themselves."""
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
    """How often a client should look."""


class ServerSettings(BaseSettings):
    """The settings of a server: flags beat the environment, which beats the file, which beats the container."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        env_prefix="AXOLOTL_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    server: ServerIdentity = Field(default_factory=ServerIdentity)
    http: HttpSettings = Field(default_factory=HttpSettings)
    stdio: StdioSettings = Field(default_factory=StdioSettings)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    protocol: ProtocolSettings = Field(default_factory=ProtocolSettings)
    caching: CachingSettings = Field(default_factory=CachingSettings)
    subscriptions: SubscriptionSettings = Field(default_factory=SubscriptionSettings)
    tasks: TaskSettings = Field(default_factory=TaskSettings)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    authorization: AuthorizationSettings = Field(default_factory=AuthorizationSettings)
    approval: ApprovalSettings = Field(default_factory=ApprovalSettings)
    idempotency: IdempotencySettings = Field(default_factory=IdempotencySettings)
    tools: ToolsSettings = Field(default_factory=ToolsSettings)
    toolsets: dict[str, ToolsetOverrides] = {}
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Hear what is said and nothing else: `load_settings` weighs the environment against the other sources."""
        return (init_settings,)
