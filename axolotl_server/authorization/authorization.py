"""The one place that knows who may use what, and what those are told who may not: lists and calls both ask here."""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from axolotl_core.errors import (
    ConfigurationError,
    Forbidden,
    InternalError,
    InvalidParams,
    MethodNotFound,
    PromptNotFound,
    ProtocolError,
    ResourceNotFound,
    ToolNotFound,
)
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ToolCall
from axolotl_core.policies.access import Decision, IAuthorizer, because_of
from axolotl_core.protocol.identity import Principal
from axolotl_server.authorization.rules import DefaultAuthorizer
from axolotl_server.features.completion import CompletionFeature
from axolotl_server.lifecycle.time_limit import answer_within
from axolotl_server.messages.request import Request
from axolotl_server.settings.policies import AuthorizationSettings

_log = logging.getLogger("axolotl")


@dataclass(frozen=True, slots=True)
class Undecided(Decision):
    """A refusal because nobody could decide; the reference is that of the log."""

    reference: str = ""


class BoundedAuthorizer(IAuthorizer):
    """Limits the time of another authorizer, and refuses whatever that one fails to decide."""

    def __init__(self, authorizer: IAuthorizer, timeout_seconds: float) -> None:
        self._authorizer = authorizer
        self._seconds = timeout_seconds

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        try:
            decision = await answer_within(self._seconds, lambda: self._authorizer.decide(principal, spec))
            if isinstance(decision, Decision):
                return decision
            raise TypeError(f"The authorizer returned {type(decision).__name__}, which is not a Decision")
        except Exception as error:
            return _undecided(spec, error)


def _undecided(spec: FeatureSpec, error: BaseException) -> Undecided:
    reference = secrets.token_hex(6)
    _log.error("authorization of %s %s failed, reference %s", spec.kind, spec.name, reference, exc_info=error)
    return Undecided(False, "authorizer", "it failed", reference)


Denial: TypeAlias = Forbidden | ProtocolError
"""What a refused call ends with."""

_DECIDED_AT_ONCE: Final = 32


class GuardVerdict(NamedTuple):
    """The decision of the guard on one feature for one request."""

    spec: FeatureSpec
    denial: Denial | None
    """The error that the request ends with; None if it may pass."""


@dataclass(frozen=True, slots=True)
class MissingScopes(Decision):
    """A refusal because the principal lacks scopes of the feature, which it could get."""

    scopes: frozenset[str] = frozenset()
    """All that the feature demands."""


class Authorization:
    """Asks the authorizer and makes the refusals."""

    def __init__(self, authorizer: IAuthorizer, settings: AuthorizationSettings, *, only_scopes: bool = False) -> None:
        self._only_scopes = only_scopes
        # A subclass may decide by more than the rules, so it is asked like any other authorizer.
        self.policy: Final = authorizer if type(authorizer) is DefaultAuthorizer else None
        """The ready policy, where the rules of the settings decide."""
        self.waits: Final = self.policy is None
        """Whether a decision may take time."""
        self.hides: Final = settings.denied_as == "not_found"
        """Whether a refusal looks as if there were nothing to refuse."""
        self._authorizer = BoundedAuthorizer(authorizer, settings.timeout_seconds)

    def concerns(self, spec: FeatureSpec) -> bool:
        """Tell whether anybody could be refused a feature."""
        return not self._only_scopes or bool(subject_of(spec).feature.scopes)

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Decide on one principal and one feature; what nobody can decide is denied.

        The authorizer is always asked, so that all decisions take alike long; then the feature's own scopes count.
        """
        if self.policy is not None:
            decision = self.policy.judge(principal, spec)
        else:
            decision = await self._authorizer.decide(principal, spec)
        scopes = spec.feature.scopes
        if not scopes or decision.allowed is not True or principal.scopes.issuperset(scopes):
            return decision
        missing = ", ".join(sorted({*scopes} - principal.scopes))
        return MissingScopes(False, f"scopes of the {spec.kind}", f"the principal lacks {missing}", frozenset(scopes))

    async def allowed(self, principal: Principal, specs: Sequence[FeatureSpec]) -> list[bool]:
        """Decide on several features.

        Raises:
            InternalError: if nobody could decide on one of them.
        """
        if self.policy is not None:
            return [(await self.decide(principal, spec)).allowed for spec in specs]
        decisions: list[Decision] = []
        while len(decisions) < len(specs):
            # One alone at first: an authorizer that does not answer shall not fail for all of them at once.
            start, number = len(decisions), _DECIDED_AT_ONCE if decisions else 1
            some = specs[start : start + number]
            decisions += await asyncio.gather(*(self.decide(principal, spec) for spec in some))
            _raise_if_undecided(decisions[start:])
        return [decision.allowed is True for decision in decisions]

    async def admit(self, call: ToolCall) -> None:
        """Let a call pass, or not.

        Raises:
            Forbidden: if the principal may not use the feature, or a ProtocolError that says there is none.
        """
        spec = subject_of(call.spec)
        verdict = call.caller.verdict if isinstance(call.caller, Request) else None
        if verdict is not None and verdict.spec is spec:
            denial = verdict.denial
        else:
            decision = await self.decide(call.principal, spec)
            denial = None if decision.allowed is True else self._denial(call, spec, decision)
        if denial is not None:
            raise denial

    def _denial(self, call: ToolCall, spec: FeatureSpec, decision: Decision) -> Denial:
        return because_of(_missing(call), decision) if self.hides else forbidden(spec, decision)


def authorization_of(
    settings: AuthorizationSettings, authorizer: IAuthorizer | None, *, has_tokens: bool = False
) -> Authorization | None:
    """Make what the settings and the container ask for; None where that is nothing.

    Where callers come with tokens, the scopes of features are demanded without a policy too.

    Raises:
        ConfigurationError: if there are two policies.
    """
    if has_tokens and settings.mode is None and authorizer is None and not settings.has_policy:
        settings = settings.model_copy(update={"default": "allow"})
        return Authorization(DefaultAuthorizer(settings), settings, only_scopes=True)
    if settings.mode == "off" or (authorizer is None and not settings.enforced):
        return None
    if authorizer is not None and settings.has_policy:
        raise ConfigurationError(
            "There are two policies: the role authorizer of the container, and the rules or the default of the "
            "settings; keep one"
        )
    return Authorization(DefaultAuthorizer(settings) if authorizer is None else authorizer, settings)


def forbidden(spec: FeatureSpec, decision: Decision) -> Forbidden:
    """Say that a principal may not use a feature, and nothing about why."""
    what = f"{spec.kind.title()} {spec.name}"
    if isinstance(decision, Undecided):
        meta = {"reason": "forbidden", "reference": decision.reference}
        text = f"{what} is forbidden, because nobody could decide. Reference: {decision.reference}"
        return because_of(Forbidden(text, meta=meta), decision)
    return because_of(Forbidden(f"{what} is forbidden for you", meta={"reason": "forbidden"}), decision)


def subject_of(spec: FeatureSpec) -> FeatureSpec:
    """Tell whose permission a call needs: to complete something is to use it."""
    return spec.feature.owner if isinstance(spec.feature, CompletionFeature) else spec


def _missing(call: ToolCall) -> ProtocolError:
    """Say that there is no such feature; a call that gets here was not judged at the door."""
    spec = call.spec
    if spec.kind == "tool":
        return ToolNotFound(spec.name)
    if spec.kind == "prompt":
        return PromptNotFound(spec.name)
    if spec.kind == "resource":
        return ResourceNotFound(call.uri)
    if spec.kind == "completion":
        return InvalidParams(f"Invalid params: there is nothing called {spec.name}")
    return MethodNotFound(f"Method not found: {spec.name}")


def _raise_if_undecided(decisions: Sequence[Decision]) -> None:
    for decision in decisions:
        if isinstance(decision, Undecided):
            data = {"reference": decision.reference}
            raise InternalError(f"Internal error. Reference: {decision.reference}", data=data)
