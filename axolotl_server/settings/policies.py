"""The sections `quotas`, `audit` and `authorization` of the settings."""

from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr, StringConstraints, field_validator, model_validator

from axolotl_core.features.feature import Kind, RuledKind
from axolotl_core.policies.quota import Counted, Dimension, QuotaRule, RateLimit, Window, WindowLimit
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.section import Section

_OF_CALLS: Final = frozenset({"tool", "toolset"})
"""What only calls can be counted by."""


class QuotaRuleSettings(Section):
    """A rate limit, or a quota per calendar window."""

    counts: Counted = "calls"
    """Whether the rule counts calls of tools, prompts and resources, or requests of any method."""
    per: tuple[Dimension, ...] = ()
    """What is counted separately. Without any, the whole server shares one count."""
    tools: tuple[str, ...] = ()
    """The tools to which the rule applies, by name or pattern. All unless set."""
    toolsets: tuple[str, ...] = ()
    """The tool sets to which the rule applies, including nested ones. All unless set."""
    kinds: tuple[Kind, ...] = ()
    """The kinds of features to which the rule applies. All unless set, or only tools if `tools` is set."""
    rate_per_second: PositiveFloat | None = None
    """The sustained rate per second."""
    burst: PositiveFloat | None = None
    """How many may come at once. Defaults to one second's worth, at least 1."""
    limit: PositiveFloat | None = None
    """How many may come in each `window`, instead of a rate."""
    window: Window | None = None
    """The calendar window of the limit, in UTC."""

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        rate = self.rate_per_second is not None
        quota = self.limit is not None and self.window is not None
        mixed = self.limit is not None or self.window is not None if rate else self.burst is not None
        if rate == quota or mixed:
            raise ValueError("a rule needs either rate_per_second, optionally with burst, or limit and window")
        if self.counts == "requests" and (self.tools or self.toolsets or self.kinds or _OF_CALLS & {*self.per}):
            raise ValueError(
                "a rule that counts requests applies to all of them: it can only be per principal or tenant"
            )
        return self

    def rule(self, name: str) -> QuotaRule:
        """Return the rule as the server applies it."""
        kinds = frozenset(self.kinds)
        return QuotaRule(name, self._limit(), frozenset(self.per), self.tools, self.toolsets, kinds, self.counts)

    def _limit(self) -> RateLimit | WindowLimit:
        if self.rate_per_second is not None:
            return RateLimit(self.rate_per_second, self.burst or max(1.0, self.rate_per_second))
        assert self.limit is not None
        assert self.window is not None
        return WindowLimit(self.limit, self.window)


_RuleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class QuotaSettings(Section):
    """Rate limits and quotas."""

    rules: dict[_RuleName, QuotaRuleSettings] = Field(default_factory=dict)
    """Rules by name. Callers see the name when they exceed the limit."""
    on_store_failure: Literal["open", "closed"] = "open"
    """Whether calls pass (`open`) or are refused (`closed`) while the store is down."""


OnFailure: TypeAlias = Literal["open", "closed"]


WORKER: Final = "{worker}"
"""Stands for the number of a worker in the paths of audit logs."""


class AuditSettings(Section):
    """The audit log. Off unless a sink is set here or in the container."""

    jsonl_path: Path | None = None
    """A file for records as JSON lines."""
    stderr: bool = False
    """Whether to write records to stderr, without a hash chain."""
    durability: Literal["write", "fsync"] = "write"
    """How far a record is written before the caller is answered: to the operating system (`write`) or the disk
    (`fsync`)."""
    on_failure: OnFailure = "closed"
    """Whether calls continue (`open`) or are refused (`closed`) while records cannot be written."""
    arguments: Literal["digest", "redacted"] = "digest"
    """Whether records have a digest of the arguments, or the arguments without sensitive values."""
    key: SecretStr | None = Field(None, min_length=16)
    """A secret of at least 16 characters that protects the hash chain from being rewritten."""
    max_bytes: PositiveInt = 64 * 1024 * 1024
    """The size at which the file is rotated."""
    max_files: PositiveInt | None = None
    """How many rotated files are kept. All unless set."""

    @property
    def enabled(self) -> bool:
        """Whether the settings alone name a sink."""
        return self.stderr or self.jsonl_path is not None

    def of_worker(self, worker: str) -> Self:
        """Name the file of one worker."""
        path = None if self.jsonl_path is None else Path(str(self.jsonl_path).replace(WORKER, worker))
        return self.model_copy(update={"jsonl_path": path})


_Words: TypeAlias = Annotated[frozenset[str], Field(min_length=1)]


class Who(Section):
    """The principals that a rule matches. All given conditions must hold."""

    subjects: _Words | None = None
    """Matches principals with one of these subjects."""
    tenants: _Words | None = None
    """Matches principals in one of these tenants."""
    roles: _Words | None = None
    """Matches principals with at least one of these roles."""
    scopes: _Words | None = None
    """Matches principals with all of these scopes."""
    anonymous: bool | None = None
    """Matches principals that are anonymous, or that are not."""


class What(Section):
    """The features that a rule matches. All given conditions must hold."""

    names: _Words | None = None
    """Matches features by name, URI or template, or by a pattern with `*` and `?`."""
    kinds: Annotated[frozenset[RuledKind], Field(min_length=1)] | None = None
    """Matches features of these kinds."""
    toolsets: _Words | None = None
    """Matches features in these tool sets, including nested ones."""
    tags: _Words | None = None
    """Matches features with at least one of these tags."""
    destructive: bool | None = None
    """Matches tools by annotation. A tool without one counts as destructive."""
    read_only: bool | None = None
    """Matches tools by annotation. A tool without one does not count as read-only."""


class AuthorizationRule(Section):
    """A rule of the policy."""

    name: str = Field(min_length=1)
    """The name of the rule, for the audit log and `axolotl policy explain`."""
    effect: Literal["allow", "deny"]
    """Whether the rule allows or denies. Denying takes precedence."""
    who: Who = Field(default_factory=Who)
    """The principals that the rule matches. All unless set."""
    what: What = Field(default_factory=What)
    """The features that the rule matches. All unless set."""


class AuthorizationSettings(Section):
    """Authorization: who may use what."""

    default: Literal["deny", "allow"] | None = None
    """The decision if no rule matches. Deny unless set."""
    denied_as: Literal["forbidden", "not_found"] = "not_found"
    """Whether a denied feature looks forbidden, or as if it did not exist."""
    rules: tuple[AuthorizationRule, ...] = ()
    """The rules. Denying takes precedence over allowing."""

    @field_validator("rules")
    @classmethod
    def _refuse_equal_names(cls, rules: tuple[AuthorizationRule, ...]) -> tuple[AuthorizationRule, ...]:
        names = [rule.name for rule in rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two rules have the same name: {', '.join(twice)}")
        return rules

    @property
    def has_policy(self) -> bool:
        """Whether the settings contain a policy."""
        return bool(self.rules) or self.default is not None


class PrincipalSettings(Section):
    """The principal of a client that cannot authenticate, such as on stdio."""

    subject: str = Field(min_length=1)
    """The subject of the principal."""
    tenant: str | None = None
    """The tenant of the principal."""
    scopes: frozenset[str] = frozenset()
    """The scopes of the principal."""
    roles: frozenset[str] = frozenset()
    """The roles of the principal."""

    @property
    def principal(self) -> Principal:
        """The principal itself."""
        return Principal(self.subject, self.tenant, self.scopes, self.roles)
