"""Everything an operator can set, in sections; units stand in the names."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt, SecretStr

from axolotl_core.features.feature import Execution
from axolotl_core.protocol.messages import LogLevel
from axolotl_server.settings.section import LOWER_CASE, Section


class LimitOverrides(Section):
    """Limits of a tool or of a tool set, set by the operator."""

    timeout_seconds: PositiveFloat | None = None
    """The deadline of a call. Wins over the deadline in the code of the tool."""
    max_timeout_seconds: PositiveFloat | None = None
    """How far progress may move the deadline, counted from the start of the call."""
    max_concurrency: PositiveInt | None = None
    """How many calls may run at once: of the tool, or of all tools in the set together."""
    queue_limit: int | None = Field(None, ge=0)
    """How many more calls may wait until others have ended."""
    queue_timeout_seconds: PositiveFloat | None = None
    """How long a call may wait in the queue."""
    pool: str | None = None
    """The group of threads or processes that runs the calls. Tools that name the same group share it."""
    max_result_bytes: PositiveInt | None = None
    """The maximum size of a result."""


class ToolOverrides(LimitOverrides):
    """Settings of one tool. They win over those of its tool set and over the attributes of the tool."""

    execution: Execution | None = None
    """Where the tool runs."""
    coerce_arguments: bool | None = None
    """Whether to coerce its arguments."""
    enabled: bool = True
    """Whether to serve the tool."""


class ToolsetOverrides(LimitOverrides):
    """Settings of one tool set: limits that its tools share, and defaults for each of them."""


class ToolsSettings(Section):
    """Settings of all tools, and of one tool under `tools.<name>`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ToolOverrides] = Field(init=False)

    name_matching: Literal["fold", "exact"] = "fold"
    """Whether `ECHO` finds `echo`."""
    coerce_arguments: bool = False
    """Whether `"5"` is accepted for 5, unless the tool or `tools.<name>` says otherwise."""

    def overrides_for(self, name: str) -> ToolOverrides:
        """Return the settings of a tool; the case of its name does not matter."""
        by_fold = {key.casefold(): overrides for key, overrides in self.overrides.items()}
        return by_fold.get(name.casefold(), _NO_OVERRIDES)

    @property
    def overrides(self) -> dict[str, ToolOverrides]:
        """The settings of single tools, by name."""
        return self.__pydantic_extra__ or {}


_NO_OVERRIDES = ToolOverrides()


class ApprovalSettings(Section):
    """Tools that a person has to approve, call by call."""

    required_for: Literal["declared", "destructive", "not_read_only"] = "declared"
    """Which tools need it besides those that say so themselves, which always do."""
    tools: tuple[str, ...] = ()
    """More of them, by name; `*` and `?` stand for anything."""


class IdempotencySettings(Section):
    """What is kept of calls that must not be done twice, for tools that ask for it."""

    max_entries: PositiveInt = 10_000
    """How many results are kept in memory; beyond that the oldest go."""
    max_bytes: PositiveInt = 64 * 1024 * 1024
    """How many bytes of results are kept in memory; beyond that the oldest go."""
    max_record_bytes: PositiveInt = 1024 * 1024
    """The largest result that is kept; of a larger one only that the work was done."""
    redis_url: SecretStr | None = None
    """Where replicas share results; without one, each process knows its own only."""
    redis_prefix: str = "axolotl:result:"
    """What all keys in Redis begin with."""
    redis_connections: PositiveInt = 20
    """How many connections a process opens at most."""
    claim_seconds: PositiveFloat = 10.0
    """When another replica may do the work of one that no longer says that it is at it."""
    store_timeout_seconds: PositiveFloat = 1.0
    """How long a call waits for the store."""
    on_store_failure: Literal["open", "closed"] = "closed"
    """Whether calls run unprotected (`open`) or are refused (`closed`) while the store is away."""


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
    log_level: Annotated[LogLevel, LOWER_CASE] = "info"
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
