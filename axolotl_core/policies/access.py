"""Ports for authentication and authorization: `ITokenVerifier`, `IAuthorizer`, `Decision`."""

from abc import ABC, abstractmethod
from typing import Final, TypeVar

import msgspec

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import Principal

ErrorT = TypeVar("ErrorT", bound=BaseException)

_KEY: Final = "_decision"


class Decision(msgspec.Struct, frozen=True):
    """Whether a principal may use a feature, and why. Callers never see the rule and the reason."""

    allowed: bool
    rule: str
    """The name of the rule that decided."""
    reason: str = ""


class IAuthorizer(ABC):
    """Decides who may use which tool, prompt, resource or extension method.

    It is asked before each call, and for each feature of a list: principals do not see features that they may not use.
    It can await, but not for long. An exception or a timeout denies access. To complete an argument, a principal needs
    access to the prompt or resource. If access is allowed, the principal still needs the `scopes` of the feature.
    """

    @abstractmethod
    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Decide whether a principal may use a feature."""


def with_decision(error: ErrorT, decision: Decision) -> ErrorT:
    """Attach a decision to an error, for records. It is not sent to the client."""
    vars(error)[_KEY] = decision
    return error


def decision_behind(error: BaseException) -> Decision | None:
    """Return the decision behind a refusal, which may look like another error to the caller."""
    decision = vars(error).get(_KEY)
    return decision if isinstance(decision, Decision) else None


class ITokenVerifier(ABC):
    """Verifies bearer tokens and returns their principals.

    It runs before the body of a request is read, unless the token was accepted recently. It can await, but not for
    long. On a timeout, or an exception other than `InvalidToken`, the request is refused and the client should try
    again. If the `claims` of a principal contain `exp` or `nbf`, it is cached only within these times. Do not put the
    token into the principal or a log.
    """

    @abstractmethod
    async def verify(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises:
            InvalidToken: if the token is invalid, or not meant for this server.
        """
