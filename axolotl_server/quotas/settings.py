"""What an operator says about rates and quotas."""

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    StringConstraints,
    model_validator,
)

from axolotl_core.feature import Kind
from axolotl_core.quota import Dimension, QuotaRule, RateLimit, Window, WindowLimit

__all__ = ["QuotaRuleSettings", "QuotaSettings"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class QuotaRuleSettings(_Section):
    """One rule: a rate, or a limit for a stretch of the calendar."""

    per: tuple[Dimension, ...] = ()
    """What has a count of its own; without any, the whole server shares one."""
    tools: tuple[str, ...] = ()
    """Which tools it is for, by name or pattern; for all without any."""
    toolsets: tuple[str, ...] = ()
    """Which tool sets it is for, with the sets inside of them; for everything without any."""
    kinds: tuple[Kind, ...] = ()
    """Which kinds of features it is for: all, but tools alone where `tools` names some."""
    rate_per_second: PositiveFloat | None = None
    """How much may be taken a second in the long run."""
    burst: PositiveFloat | None = None
    """How much may be taken at once; as much as in a second, but at least 1, if it is not said."""
    limit: PositiveFloat | None = None
    """How much may be taken in each `window`, instead of a rate."""
    window: Window | None = None
    """In which stretch of the calendar, in UTC, the limit holds."""

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        rate = self.rate_per_second is not None
        quota = self.limit is not None and self.window is not None
        mixed = self.limit is not None or self.window is not None if rate else self.burst is not None
        if rate == quota or mixed:
            raise ValueError("a rule has either rate_per_second, with or without burst, or limit and window")
        return self

    def rule(self, name: str) -> QuotaRule:
        """Give the rule as the server applies it."""
        return QuotaRule(name, self._limit(), frozenset(self.per), self.tools, self.toolsets, frozenset(self.kinds))

    def _limit(self) -> RateLimit | WindowLimit:
        if self.rate_per_second is not None:
            return RateLimit(self.rate_per_second, self.burst or max(1.0, self.rate_per_second))
        assert self.limit is not None
        assert self.window is not None
        return WindowLimit(self.limit, self.window)


_RuleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class QuotaSettings(_Section):
    """Rates and quotas."""

    rules: dict[_RuleName, QuotaRuleSettings] = {}
    """By a name of your choice, which callers are told when they meet the limit."""
    max_entries: PositiveInt = 100_000
    """How many counts are kept in memory; beyond that, those that say least are dropped."""
    redis_url: SecretStr | None = None
    """Where replicas share their counts; without one, each process counts for itself."""
    redis_prefix: str = "axolotl:quota:"
    """What all keys in Redis begin with."""
    redis_connections: PositiveInt = 20
    """How many connections a process opens at most."""
    store_timeout_seconds: PositiveFloat = 0.25
    """How long a call waits for a store that is not in memory."""
    store_retry_seconds: PositiveFloat = 1.0
    """How long a store that failed is left alone."""
    on_store_failure: Literal["open", "closed"] = "open"
    """Whether calls pass (`open`) or are refused (`closed`) while the store is away."""
