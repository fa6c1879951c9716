"""The sections of the settings about calls."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt, SecretStr, StringConstraints

from axolotl_server.settings.section import Section


class ToolsetOverrides(Section):
    """Settings of one tool set."""

    timeout_seconds: PositiveFloat | None = None
    """The deadline of a call. Overrides the deadline in the code of the tool."""
    max_concurrency: PositiveInt | None = None
    """How many calls may run at once: of the tool, or of all tools in the set together."""


class ToolOverrides(ToolsetOverrides):
    """Settings of one tool. They win over those of its tool set and over the attributes of the tool."""

    queue_limit: int | None = Field(None, ge=0)
    """How many more calls may wait in the queue."""
    enabled: bool = True
    """Whether to serve the tool."""


class ToolsSettings(Section):
    """Settings of all tools, and of one tool under `tools.<name>`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ToolOverrides] = Field(init=False)

    coerce_arguments: bool = False
    """Whether `"5"` is accepted for 5, unless the tool sets it."""
    inline_references: bool = False
    """Whether each `$ref` in a schema is replaced by its definition, except for recursive types."""

    def overrides_for(self, name: str) -> ToolOverrides:
        """Return the settings of a tool; the case of its name does not matter."""
        by_fold = {key.casefold(): overrides for key, overrides in self.overrides.items()}
        return by_fold.get(name.casefold(), _NO_OVERRIDES)

    @property
    def overrides(self) -> dict[str, ToolOverrides]:
        """The settings of single tools, by name."""
        return self.__pydantic_extra__ or {}


_NO_OVERRIDES = ToolOverrides.model_construct()


class ApprovalSettings(Section):
    """Human approval of calls."""

    required_for: Literal["declared", "destructive", "not_read_only"] = "declared"
    """Which tools need approval, besides those that declare it."""
    tools: tuple[str, ...] = ()
    """More tools that need approval, by name. `*` and `?` are wildcards."""


class IdempotencySettings(Section):
    """Stored results of idempotent tools."""

    max_bytes: PositiveInt = 64 * 1024 * 1024
    """How many bytes of results are kept in memory. The oldest are dropped first."""
    on_store_failure: Literal["open", "closed"] = "closed"
    """Whether calls run unprotected (`open`) or are refused (`closed`) while the store is down."""


class LimitSettings(Section):
    """Limits that apply to every call, unless a tool or tool set has its own."""

    timeout_seconds: PositiveFloat = 30.0
    """The deadline of a call, unless the tool or `tools.<name>` has its own."""
    max_timeout_seconds: PositiveFloat = 300.0
    """The maximum duration of a call whose deadline is extended by progress."""
    max_inflight: PositiveInt = 10_000
    """The maximum number of running and waiting calls. Others are refused."""
    share_per_caller: float = Field(0.1, gt=0, le=1)
    """How much of the calls, sessions, subscriptions and tasks of this server one principal over HTTP may have, or one
    address if anonymous; and how many of the connections one address. 1 means everything."""
    max_concurrency: PositiveInt | None = None
    """How many calls may run at once in the whole server. Unlimited unless set."""
    queue_limit: int = Field(0, ge=0)
    """How many calls may wait for a slot, per limit."""
    queue_timeout_seconds: PositiveFloat = 1.0
    """How long a call may wait for a slot before it is refused."""
    max_result_bytes: PositiveInt = 4 * 1024 * 1024
    """The maximum size of a result."""
    max_message_bytes: PositiveInt = 4 * 1024 * 1024
    """The maximum size of a message: an HTTP body, or a line on stdio."""
    threads: PositiveInt = 256
    """The maximum number of threads that run tools. They start on demand. Beyond it, calls wait."""
    processes: PositiveInt = 4
    """The maximum number of processes for a tool with `execution = "process"`."""
    max_process_bytes: PositiveInt | None = None
    """How much memory a tool process may use."""
    ask_timeout_seconds: PositiveFloat = 300.0
    """How long a call waits for an answer from its user. Its deadline is paused meanwhile."""

    def of_caller(self, maximum: int) -> int:
        """Return how many of something one caller may have."""
        return max(1, round(maximum * self.share_per_caller))


class ProtocolSettings(Section):
    """Choices that the protocol leaves open."""

    ascii_names: bool = True
    """Whether the names of tools and prompts must be ASCII, so that no two of them look alike."""
    unknown_tool: Literal["by_revision", "method_not_found", "invalid_params"] = "by_revision"
    """The error code for an unknown tool."""
    invalid_arguments: Literal["by_revision", "error", "result"] = "by_revision"
    """Whether invalid arguments are an error, or a result that the model reads."""
    is_error: Literal["on_error", "always"] = "on_error"
    """Whether results of `tools/call` have `isError` only if the tool failed, or always."""
    require_initialized: bool = True
    """Whether a client must send `notifications/initialized` before it can use tools."""
    state_keys: tuple[SecretStr, ...] = ()
    """Secrets of at least 16 characters that encrypt the state of questions. The first encrypts, all decrypt. Unless
    set, each process generates its own."""


class CachingSettings(Section):
    """Cache hints for clients of the stateless revision."""

    list_ttl_seconds: float = Field(0.0, ge=0)
    """How long clients may cache lists."""
    resource_ttl_seconds: float = Field(0.0, ge=0)
    """How long clients may cache resources that set no hint themselves."""
    scope: Literal["private", "public"] = "private"
    """Whether shared caches may store responses that do not depend on the caller."""


class SubscriptionSettings(Section):
    """Subscriptions to changes."""

    maximum: PositiveInt = 1000
    """How many `subscriptions/listen` streams may be open at once."""


class TaskSettings(Section):
    """Calls that run as tasks."""

    url: SecretStr | None = None
    """Where tasks are stored: `sqlite:///tasks.db` for one machine, `postgresql://host/database` for many. Without it,
    they are kept in memory and end with the process."""
    postgres_schema: Annotated[str, StringConstraints(pattern="^[a-z_][a-z0-9_]{0,40}$")] = "axolotl"
    """The schema of the Postgres database that holds the tables."""
    run_here: bool = True
    """Whether servers also run stored tasks, besides `axolotl worker`."""
    concurrency: PositiveInt = 100
    """How many stored tasks one process runs at once."""
    lease_seconds: PositiveFloat = 30.0
    """How long a worker may be silent before it is presumed dead and others take over its tasks."""
    maximum: PositiveInt = 1000
    """How many tasks may be open at once."""
    ttl_seconds: PositiveFloat = 3600.0
    """How long a task and its result are kept after its start."""
