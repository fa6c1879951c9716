"""What an operator can say about single tools and tool sets."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from axolotl_core.feature import Execution
from axolotl_server.settings_section import Section

__all__ = ["ToolOverrides", "ToolsSettings", "ToolsetOverrides"]


class ToolOverrides(Section):
    """What an operator says about one tool; it beats what the tool says itself."""

    timeout_seconds: PositiveFloat | None = None
    """The deadline of this tool."""
    max_timeout_seconds: PositiveFloat | None = None
    """How far progress may move its deadline, from the start of the call."""
    max_concurrency: PositiveInt | None = None
    """How many of its calls may run at once."""
    queue_limit: int | None = Field(None, ge=0)
    """How many more of them wait for a place."""
    queue_timeout_seconds: PositiveFloat | None = None
    """How long they wait."""
    pool: str | None = None
    """The group of threads in which it runs, shared with all that name the same one."""
    max_result_bytes: PositiveInt | None = None
    """How large its results may be."""
    execution: Execution | None = None
    """Where it runs."""
    coerce_arguments: bool | None = None
    """Whether its arguments are coerced."""
    enabled: bool = True
    """Whether it is served."""


class ToolsSettings(BaseModel):
    """All tools, and under `tools.<name>` one of them."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, ToolOverrides] = Field(init=False)

    name_matching: Literal["fold", "exact"] = "fold"
    """Whether `ECHO` finds `echo`."""
    coerce_arguments: bool = False
    """Whether `"5"` is accepted for 5, unless the tool or `tools.<name>` says otherwise."""

    def overrides_for(self, name: str) -> ToolOverrides:
        """Find what is said about a tool, whatever the case of its name."""
        by_fold = {key.casefold(): overrides for key, overrides in self.overrides.items()}
        return by_fold.get(name.casefold(), _NO_OVERRIDES)

    @property
    def overrides(self) -> dict[str, ToolOverrides]:
        """The tools that something is said about."""
        return self.__pydantic_extra__ or {}


_NO_OVERRIDES = ToolOverrides()


class ToolsetOverrides(Section):
    """What an operator says about one tool set: limits that its tools share, and defaults for each of them."""

    timeout_seconds: PositiveFloat | None = None
    """The deadline of its tools, unless `tools.<name>` has another; it beats the class."""
    max_timeout_seconds: PositiveFloat | None = None
    """How far progress may move their deadline."""
    max_concurrency: PositiveInt | None = None
    """How many calls of all its tools together run at once."""
    queue_limit: int | None = Field(None, ge=0)
    """How many more calls wait for a place in the set."""
    queue_timeout_seconds: PositiveFloat | None = None
    """How long they wait."""
    pool: str | None = None
    """The group of threads in which they run."""
    max_result_bytes: PositiveInt | None = None
    """How large their results may be."""
