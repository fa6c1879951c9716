"""The section `authorization`: an ordered table of rules, what holds without one, and how a refusal looks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from axolotl_core.features.feature import Kind
from axolotl_core.names import nearest
from axolotl_core.policies.quota import Dimension, QuotaRule, RateLimit, Window, WindowLimit
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.section import Section


class QuotaRuleSettings(Section):
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


class QuotaSettings(Section):
    """Rates and quotas."""

    rules: dict[_RuleName, QuotaRuleSettings] = Field(default_factory=dict)
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


Durability: TypeAlias = Literal["none", "write", "fsync"]
OnFailure: TypeAlias = Literal["open", "closed"]


class AuditSettings(Section):
    """The records of calls; there are none unless a sink is named here or in the container."""

    jsonl_path: Path | None = None
    """The file for records as JSON lines."""
    sqlite_path: Path | None = None
    """The SQLite database for records."""
    stderr: bool = False
    """Whether records are written to the standard error stream, without a hash chain."""
    durability: Durability = "write"
    """What has happened to a record when its caller is answered: nothing yet, the system has it, or the disk has it."""
    on_failure: OnFailure = "closed"
    """Whether calls go on (`open`) or are refused (`closed`) when records cannot be kept."""
    arguments: Literal["digest", "redacted"] = "digest"
    """Whether records show arguments, save for sensitive ones, or only a digest of them."""
    kinds: tuple[Kind, ...] = ("tool", "prompt", "resource", "extension")
    """Whose calls are recorded."""
    key: SecretStr | None = Field(None, min_length=16)
    """A secret of at least 16 characters without which nobody can write the hash chain anew."""
    max_bytes: PositiveInt = 64 * 1024 * 1024
    """How large the file may grow before the next one begins."""
    max_files: PositiveInt | None = None
    """How many files are kept besides the current one; all unless it is set."""
    timeout_seconds: PositiveFloat = 5.0
    """How long a sink may take to keep a record before it counts as failed."""

    @property
    def enabled(self) -> bool:
        """Whether the settings alone name a sink."""
        return self.stderr or self.jsonl_path is not None or self.sqlite_path is not None


def _one_of(*words: str) -> BeforeValidator:
    """Refuse a word that is none of these, and say which of them is near."""

    def check(value: object) -> object:
        if not isinstance(value, str) or value in words:
            return value
        near = nearest(value, words)
        hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(words)}"
        raise PydanticCustomError("unknown_word", "{text}", {"text": f"there is no {value!r}; {hint}"})

    return BeforeValidator(check)


RuledKind: TypeAlias = Literal["tool", "prompt", "resource", "extension"]
"""What rules can be about; completions go with what they complete."""

_Words: TypeAlias = Annotated[frozenset[str], Field(min_length=1)]
_Kind: TypeAlias = Annotated[RuledKind, _one_of("tool", "prompt", "resource", "extension")]


class _Part(Section):
    """A table inside of the section; it names the nearest key itself, since no path of plain keys leads to it."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        unknown = [key for key in data if key not in cls.model_fields] if isinstance(data, Mapping) else []
        if unknown:
            text = "; ".join(_unknown_key(str(key), cls.model_fields) for key in unknown)
            raise PydanticCustomError("unknown_key", "{text}", {"text": text})
        return data


def _unknown_key(key: str, known: Iterable[str]) -> str:
    near = nearest(key, known)
    return f"{key!r} is unknown" + (f", did you mean {near!r}?" if near else f", there are: {', '.join(known)}")


class Who(_Part):
    """Whom a rule concerns: everyone for whom all that is said holds."""

    subjects: _Words | None = None
    """Matches a principal that is one of these."""
    tenants: _Words | None = None
    """Matches a principal in one of these."""
    roles: _Words | None = None
    """Matches a principal with at least one of these."""
    scopes: _Words | None = None
    """Matches a principal with all of these."""
    anonymous: bool | None = None
    """Matches a principal of whom nothing is known, or something is."""


class What(_Part):
    """What a rule concerns: everything for which all that is said holds."""

    names: _Words | None = None
    """Matches features by name, URI or the text of a template, or by a pattern with `*` and `?`."""
    kinds: Annotated[frozenset[_Kind], Field(min_length=1)] | None = None
    """Matches features of these kinds."""
    toolsets: _Words | None = None
    """Matches what is in one of these tool sets, or in a set inside of one."""
    tags: _Words | None = None
    """Matches what has at least one of these tags."""
    destructive: bool | None = None
    """Matches tools by their annotation; one that says nothing counts as destructive."""
    read_only: bool | None = None
    """Matches tools by their annotation; one that says nothing does not count as read-only."""


class AuthorizationRule(_Part):
    """One line of the policy."""

    name: str = Field(min_length=1)
    """What the audit and `axolotl policy explain` call it."""
    effect: Annotated[Literal["allow", "deny"], _one_of("allow", "deny")]
    """What the rule does; one that denies beats all that allow."""
    who: Who = Who()
    """Whom it concerns; everybody unless it is said."""
    what: What = What()
    """What it concerns; everything unless it is said."""


class AuthorizationSettings(Section):
    """Who may use what."""

    mode: Annotated[Literal["off", "enforce"] | None, _one_of("off", "enforce")] = None
    """Whether the policy holds; if it is not said, it does where there is one: rules, a default, an authorizer."""
    default: Annotated[Literal["deny", "allow"] | None, _one_of("deny", "allow")] = None
    """What holds where no rule does; deny, if it is not said."""
    denied_as: Annotated[Literal["forbidden", "not_found"], _one_of("forbidden", "not_found")] = "not_found"
    """What a refused caller is told: that it may not, or the same as if there were no such thing."""
    timeout_seconds: PositiveFloat = 2.0
    """How long an authorizer of your own may take; no answer is a refusal."""
    rules: tuple[AuthorizationRule, ...] = ()
    """A rule that denies beats all that allow; of those that say the same, the first one is named."""

    @field_validator("rules")
    @classmethod
    def _refuse_equal_names(cls, rules: tuple[AuthorizationRule, ...]) -> tuple[AuthorizationRule, ...]:
        names = [rule.name for rule in rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            text = f"two rules have the same name: {', '.join(twice)}"
            raise PydanticCustomError("equal_names", "{text}", {"text": text})
        return rules

    @property
    def enforced(self) -> bool:
        """Whether the settings alone turn authorization on."""
        return self.mode == "enforce" or (self.mode is None and self.has_policy)

    @property
    def has_policy(self) -> bool:
        """Whether the settings say who may use what."""
        return bool(self.rules) or self.default is not None


class PrincipalSettings(_Part):
    """On whose behalf the client of a transport acts that cannot prove who it is, as on stdio."""

    subject: str = Field(min_length=1)
    """On whose behalf the client acts."""
    tenant: str | None = None
    """The tenant it belongs to."""
    scopes: frozenset[str] = frozenset()
    """Its scopes."""
    roles: frozenset[str] = frozenset()
    """Its roles."""

    @property
    def principal(self) -> Principal:
        """The principal itself."""
        return Principal(self.subject, self.tenant, self.scopes, self.roles)
