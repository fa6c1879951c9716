"""What an operator can say about single tools and tool sets."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from axolotl_core.feature import Execution
from axolotl_server.settings_section import Section

__all__ = ["ToolOverrides", "ToolsSettings", "ToolsetOverrides"]


class ToolOverrides(Section):
    """What an operator says about one tool; it beats what the tool says itself."""

    timeout_seconds: PositiveFloat | None = None
    max_timeout_seconds: PositiveFloat | None = None
    max_concurrency: PositiveInt | None = None
    queue_limit: int | None = Field(None, ge=0)
    queue_timeout_seconds: PositiveFloat | None = None
    pool: str | None = None
    max_result_bytes: PositiveInt | None = None
    execution: Execution | None = None
    coerce_arguments: bool | None = None
    enabled: bool = True


class ToolsSettings(BaseModel):
    """All tools, and under `tools.<name>` one of them."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, ToolOverrides] = Field(init=False)

    name_matching: Literal["fold", "exact"] = "fold"
    coerce_arguments: bool = False

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
    max_timeout_seconds: PositiveFloat | None = None
    max_concurrency: PositiveInt | None = None
    """How many calls of all its tools together run at once."""
    queue_limit: int | None = Field(None, ge=0)
    queue_timeout_seconds: PositiveFloat | None = None
    pool: str | None = None
    max_result_bytes: PositiveInt | None = None
