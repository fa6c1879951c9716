"""The endings of calls, their report to observers, and the current call."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from axolotl_core.calls.cancellation import CancelReason
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
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.access import decision_behind
from axolotl_core.policies.audit import Outcome
from axolotl_core.protocol.result_keys import META_PREFIX
from axolotl_core.questions.question import needs_input

if TYPE_CHECKING:
    from axolotl_server.protocol.connection import IObserver

_MAX_LENGTH: Final = 200


class Ending(NamedTuple):
    """The outcome of a call, its reason, and the rule that decided it."""

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
    """Return the ending of a call that was stopped, whatever its code returned or raised."""
    return Ending("timeout" if reason is CancelReason.TIMEOUT else "cancelled", reason.value)


def ending_of(error: BaseException) -> Ending:
    """Return the ending of a call that was not stopped, from the exception that it raised."""
    decision = decision_behind(error)
    if decision is not None:
        return Ending("denied", decision.reason[:_MAX_LENGTH] or None, decision.rule[:_MAX_LENGTH])
    if isinstance(error, ToolError):
        return _ending_of_tool_error(error)
    if isinstance(error, ProtocolError):
        return Ending("error", type(error).__name__)
    if isinstance(error, asyncio.CancelledError):
        return Ending("cancelled")
    if needs_input(error):
        return Ending("input_required")
    kind = type(error)
    return Ending("failed", f"{kind.__module__}.{kind.__qualname__}"[:_MAX_LENGTH])


def _ending_of_tool_error(error: ToolError) -> Ending:
    known = next((kind for kind in type(error).__mro__ if kind in _OUTCOMES), None)
    outcome: Outcome = "error" if known is None else _OUTCOMES[known]
    meta = error.meta or {}
    reason = _short_text(meta, "reason")
    if reason is None and isinstance(error, Declined):
        reason = error.action
    return Ending(outcome, reason, _short_text(meta, "rule"))


def _short_text(meta: Mapping[str, Any], key: str) -> str | None:
    text = meta.get(f"{META_PREFIX}{key}", meta.get(key))  # errors of layers in a container have keys without prefix
    return text[:_MAX_LENGTH] if isinstance(text, str) else None


CURRENT_CALL: Final[ContextVar[Call | None]] = ContextVar("axolotl_call", default=None)
"""The innermost call that runs here, in tool threads too."""


def current_call(spec: FeatureSpec, call_next: Invoke) -> Invoke:
    """Make each call known to the code that runs for it."""

    async def known(call: Call) -> Any:
        before = CURRENT_CALL.get()
        CURRENT_CALL.set(call)
        try:
            return await call_next(call)
        finally:
            # The old value is set again without its token, because discarded code ends in another context.
            CURRENT_CALL.set(before)

    return known


class _ObservedCall(msgspec.Struct, eq=False):
    """A call whose ending is not reported yet; afterwards it drops its reference to the call, which refers to it."""

    call: Call | None
    observers: "Sequence[IObserver]"

    def end(self, ending: Ending) -> None:
        call, self.call = self.call, None
        if call is not None:
            for observer in self.observers:
                observer.call_ended(call, ending)

    def abandon(self) -> None:
        """Report that the caller is answered although the code still runs."""
        reason = None if self.call is None else self.call.cancel_reason
        self.end(Ending("abandoned", None if reason is None else reason.value))


class ObserverLayer(ILayer):
    """Reports every call to the observers, refused calls included."""

    def __init__(self, observers: "Sequence[IObserver]") -> None:
        self._observers = observers

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Report when a call begins and, once, how it ended."""
        observers = self._observers

        async def observed(call: Call) -> Any:
            for observer in observers:
                observer.call_begun(call)
            open_call = _ObservedCall(call, observers)
            call.when_abandoned(open_call.abandon)
            try:
                output = await call_next(call)
            except BaseException as error:
                stop = call.cancel_reason
                open_call.end(ending_of(error) if stop is None else ending_of_stop(stop))
                raise
            token = call.token
            open_call.end(DONE if token is None or token.reason is None else ending_of_stop(token.reason))
            return output

        return observed
