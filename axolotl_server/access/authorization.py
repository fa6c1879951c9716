"""The decisions who may use what, for lists and calls alike, and the errors for those who may not."""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

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
from axolotl_core.features.feature import NAMED_KINDS
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.access import Decision, IAuthorizer, with_decision
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.result_keys import own_meta
from axolotl_server.access.rules import DefaultAuthorizer
from axolotl_server.execution.time_limit import answer_within
from axolotl_server.features.completion import CompletionFeature
from axolotl_server.protocol.request import Request
from axolotl_server.settings.policies import AuthorizationSettings

_log = logging.getLogger("axolotl")


class Undecided(Decision, frozen=True):
    """A denial because the authorizer failed; the log has the same reference."""

    reference: str = ""


Denial: TypeAlias = Forbidden | ProtocolError
"""The error that a denied call ends with."""

TIMEOUT_SECONDS: Final = 2.0
"""How long a custom authorizer may take. No answer means deny."""
_MAX_CONCURRENT_DECISIONS: Final = 32


class GuardVerdict(NamedTuple):
    """The decision of the guard on one feature for one request."""

    spec: FeatureSpec
    denial: Denial | None
    """The error that the request ends with; None if it may pass."""


class MissingScopes(Decision, frozen=True):
    """A denial because the principal lacks scopes of the feature, which it could request."""

    scopes: frozenset[str] = frozenset()
    """All scopes that the feature requires."""


class Authorization(ILayer):
    """Asks the authorizer, and makes the errors of denials; as a layer, it refuses the calls of features."""

    def __init__(self, authorizer: IAuthorizer, settings: AuthorizationSettings, *, only_scopes: bool = False) -> None:
        self.only_scopes: Final = only_scopes
        """Whether features without scopes are open to everyone."""
        # A subclass may decide by more than the rules, so it is asked like any other authorizer.
        self.policy: Final = authorizer if type(authorizer) is DefaultAuthorizer else None
        """The rules of the settings, if they decide."""
        self.is_async: Final = self.policy is None
        """Whether a decision may take time."""
        self.hides_denied: Final = settings.denied_as == "not_found"
        """Whether a denied feature looks like one that does not exist."""
        self._authorizer = authorizer

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Refuse calls of a principal that may not use the feature."""
        if self.only_scopes and not subject_of(spec).feature.scopes:  # open to everyone
            return call_next

        async def authorized(call: Call) -> Any:
            await self.admit(call)
            return await call_next(call)

        return authorized

    def passed(self, principal: Principal, spec: FeatureSpec) -> GuardVerdict | None:
        """Return the verdict if the rules of the settings allow access and no scope is missing, without waiting.

        A tool may change its scopes at any time, so they are compared with every call.
        """
        assert self.policy is not None
        decision = _within_scopes(self.policy.judge(principal, spec), principal, spec)
        return GuardVerdict(spec, None) if decision.allowed is True else None

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Decide whether a principal may use a feature; if the authorizer fails, it may not.

        The authorizer is always asked, so that all decisions take the same time. Then the scopes of the feature count.
        """
        if self.policy is not None:
            decision = self.policy.judge(principal, spec)
        else:
            decision = await self._ask(principal, spec)
        return _within_scopes(decision, principal, spec)

    async def _ask(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Ask the authorizer of the container, which has a limited time. What it fails to decide is denied."""
        try:
            decision = await answer_within(TIMEOUT_SECONDS, lambda: self._authorizer.decide(principal, spec))
            if isinstance(decision, Decision):
                return decision
            raise TypeError(f"The authorizer returned {type(decision).__name__}, which is not a Decision")
        except Exception as error:
            reference = secrets.token_hex(6)
            _log.error("authorization of %s %s failed, reference %s", spec.kind, spec.name, reference, exc_info=error)
            return Undecided(False, "authorizer", "it failed", reference)

    async def allowed(self, principal: Principal, specs: Sequence[FeatureSpec]) -> list[bool]:
        """Decide on several features, or raise InternalError if the authorizer failed for one of them."""
        if self.policy is not None:
            judge = self.policy.judge
            return [_within_scopes(judge(principal, spec), principal, spec).allowed for spec in specs]
        decisions: list[Decision] = []
        while len(decisions) < len(specs):
            # The first one alone: an authorizer that does not answer should not fail for many at once.
            start, number = len(decisions), _MAX_CONCURRENT_DECISIONS if decisions else 1
            some = specs[start : start + number]
            decisions += await asyncio.gather(*(self.decide(principal, spec) for spec in some))
            for decision in decisions[start:]:
                if isinstance(decision, Undecided):
                    data = {"reason": "internal_error", "reference": decision.reference}
                    raise InternalError(f"Internal error. Reference: {decision.reference}", data=data)
        return [decision.allowed is True for decision in decisions]

    async def admit(self, call: Call) -> None:
        """Raise an error if the principal may not use the feature of a call.

        It is Forbidden, or the ProtocolError for a feature that does not exist.
        """
        spec = subject_of(call.spec)
        verdict = call.caller.verdict if isinstance(call.caller, Request) else None
        if verdict is not None and verdict.spec is spec:
            denial = verdict.denial
        else:
            decision = await self.decide(call.principal, spec)
            if decision.allowed is True:
                return
            denial = with_decision(_missing(call), decision) if self.hides_denied else forbidden(spec, decision)
        if denial is not None:
            raise denial


def authorization_of(settings: AuthorizationSettings, authorizer: IAuthorizer | None) -> Authorization:
    """Make the authorization that the settings or the container ask for; two policies raise ConfigurationError.

    Where callers send tokens, features require their scopes even without rules.
    """
    if authorizer is None and not settings.has_policy:
        settings = settings.model_copy(update={"default": "allow"})
        return Authorization(DefaultAuthorizer(settings), settings, only_scopes=True)
    if authorizer is not None and settings.has_policy:
        raise ConfigurationError(
            "There are two policies: the role authorizer of the container, and the rules or the default in the "
            "settings. Keep one of them"
        )
    return Authorization(DefaultAuthorizer(settings) if authorizer is None else authorizer, settings)


def forbidden(spec: FeatureSpec, decision: Decision) -> Forbidden:
    """Make the error for a denial; it does not tell the reason."""
    what = f"{spec.kind.title()} {spec.name}"
    if isinstance(decision, Undecided):
        meta = own_meta(reason="forbidden", reference=decision.reference)
        text = f"{what} is forbidden, because the authorizer failed. Reference: {decision.reference}"
        return with_decision(Forbidden(text, meta=meta), decision)
    return with_decision(Forbidden(f"{what} is forbidden for you", meta=own_meta(reason="forbidden")), decision)


def subject_of(spec: FeatureSpec) -> FeatureSpec:
    """Return the feature whose permission a call needs: that of a completion is the completed feature."""
    if spec.kind != "completion":
        return spec
    return spec.feature.owner if isinstance(spec.feature, CompletionFeature) else spec


def _within_scopes(decision: Decision, principal: Principal, spec: FeatureSpec) -> Decision:
    """Turn a permission into a denial if the principal lacks scopes of the feature."""
    scopes = spec.feature.scopes
    if not scopes or decision.allowed is not True or principal.scopes.issuperset(scopes):
        return decision
    missing = ", ".join(sorted({*scopes} - principal.scopes))
    return MissingScopes(False, f"scopes of the {spec.kind}", f"the principal lacks {missing}", frozenset(scopes))


def _missing(call: Call) -> ProtocolError:
    """Make the error for a feature that does not exist; only calls that bypass the guard get here."""
    spec = call.spec
    if spec.kind == "tool":
        return ToolNotFound(spec.name)
    if spec.kind == "prompt":
        return PromptNotFound(spec.name)
    if spec.kind not in NAMED_KINDS:
        return ResourceNotFound(call.uri)
    if spec.kind == "completion":
        return InvalidParams(f"Invalid params: there is no prompt or resource template {spec.name}")
    return MethodNotFound(f"Method not found: {spec.name}")
