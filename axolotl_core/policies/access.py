"""Who sends a request: the port that makes a principal of a bearer token."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, TypeVar

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import Principal

ErrorT = TypeVar("ErrorT", bound=BaseException)

_KEY: Final = "_decision"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a principal may use a feature, and what says so; rule and reason are for records, not for callers."""

    allowed: bool
    rule: str
    """The name of what decided."""
    reason: str = ""


class IAuthorizer(ABC):
    """Decides who may use which tool, prompt, resource or method of an extension.

    It is asked before each call and for everything that a list could show, with the same answer taken to mean the
    same: what a principal may not use, it does not see. It may wait, but not for long. Whatever it raises, and any
    answer that comes too late, is a refusal. Whoever completes an argument is asked about as if they used the prompt
    or the resource itself. Where it allows something, the `scopes` of the feature are demanded in addition.
    """

    @abstractmethod
    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Decide on one principal and one feature."""


def because_of(error: ErrorT, decision: Decision) -> ErrorT:
    """Let an error carry the decision that it tells of, for records; nothing of it is written to the wire."""
    vars(error)[_KEY] = decision
    return error


def decision_behind(error: BaseException) -> Decision | None:
    """Give the decision that a refusal comes from, whatever the refusal looks like to the caller."""
    decision = vars(error).get(_KEY)
    return decision if isinstance(decision, Decision) else None


class ITokenVerifier(ABC):
    """Finds out on whose behalf a request is made, from the token that came with it.

    It is asked before the body of a request is read, for every request whose token it has not accepted lately. It may
    wait, but not for long. Whatever else it raises, and any answer that comes too late, means that nobody can tell
    now: the request is refused, and its sender is told to try again. A principal whose `claims` have `exp` or `nbf` is
    not remembered outside of these times. The token itself belongs into neither the principal nor a log.
    """

    @abstractmethod
    async def verify(self, token: str) -> Principal:
        """Give the principal.

        Raises:
            InvalidToken: if the token is not meant for this server, or proves nothing.
        """
