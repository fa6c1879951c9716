"""Asking a person before a tool runs: the rule that a tool states, and what it means to get no yes."""

from dataclasses import dataclass

from axolotl_core.errors import Refused

__all__ = ["Approval", "CannotAskForApproval", "NotApproved"]


@dataclass(frozen=True, slots=True)
class Approval:
    """How the user is asked before each run of a tool; the question always names the tool and shows its arguments."""

    message: str | None = None
    """The question, in words of the tool's own."""
    arguments: tuple[str, ...] | None = None
    """Which arguments are shown, in this order; all where this is None."""


class NotApproved(Refused):
    """The user was asked and did not say yes, so that the tool did not run."""


class CannotAskForApproval(NotApproved):
    """The user could not be asked, so that the tool did not run; another client may be able to ask."""
