"""How a call ended, as its record says it: in words of ours, never in those of a message that may hold a secret."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from axolotl_core.audit import Outcome
from axolotl_core.authorization import decision_behind
from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import (
    Declined,
    Forbidden,
    InvalidArguments,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    Refused,
    ToolCancelled,
    ToolError,
    ToolFailed,
    ToolTimeout,
)
from axolotl_core.question import only_asks

__all__ = ["DONE", "Ending", "ending_of", "ending_of_stop"]

_LONGEST_WORD: Final = 200


class Ending(NamedTuple):
    """The outcome of a call with its reason, and the rule that decided it."""

    outcome: Outcome
    reason: str | None = None
    rule: str | None = None


DONE: Final = Ending("ok")

_OUTCOMES: Final[Mapping[type[ToolError], Outcome]] = {
    InvalidArguments: "invalid_arguments",
    Forbidden: "denied",
    QuotaExceeded: "quota",
    Overloaded: "overloaded",
    Refused: "denied",
    ToolTimeout: "timeout",
    ToolCancelled: "cancelled",
    ToolFailed: "failed",
}


def ending_of_stop(reason: CancelReason) -> Ending:
    """Tell the end of a call that was stopped, whatever its code made of it."""
    return Ending("timeout" if reason is CancelReason.TIMEOUT else "cancelled", reason.value)


def ending_of(error: BaseException) -> Ending:
    """Tell the end of a call that was not stopped, by what it raised."""
    decision = decision_behind(error)
    if decision is not None:
        return Ending("denied", decision.reason[:_LONGEST_WORD] or None, decision.rule[:_LONGEST_WORD])
    if isinstance(error, ToolError):
        return _ending_of_tool_error(error)
    if isinstance(error, ProtocolError):
        return Ending("error", type(error).__name__)
    if isinstance(error, asyncio.CancelledError):
        return Ending("cancelled")
    if only_asks(error):
        return Ending("input_required")
    kind = type(error)
    return Ending("failed", f"{kind.__module__}.{kind.__qualname__}"[:_LONGEST_WORD])


def _ending_of_tool_error(error: ToolError) -> Ending:
    known = next((kind for kind in type(error).__mro__ if kind in _OUTCOMES), None)
    outcome: Outcome = "error" if known is None else _OUTCOMES[known]
    meta = error.meta or {}
    reason = _word(meta, "reason")
    if reason is None and isinstance(error, Declined):
        reason = error.action
    return Ending(outcome, reason, _word(meta, "rule"))


def _word(meta: Mapping[str, Any], key: str) -> str | None:
    said = meta.get(key)
    return said[:_LONGEST_WORD] if isinstance(said, str) else None
