"""How each call ended, told once to whoever counts it, and before the caller is answered."""

from typing import Any, Protocol

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec
from axolotl_server.layers.audit_outcomes import DONE, Ending, ending_of, ending_of_stop

__all__ = ["IOutcomes", "OutcomeLayer"]


class IOutcomes(Protocol):
    """What wants to know how calls ended."""

    def ended(self, call: ToolCall, ending: Ending) -> None:
        """Take note of the end of a call."""
        ...


class _Visit:
    """One call, until its end is told; then this leads to the call no more, which leads here."""

    __slots__ = ("_call", "_outcomes")

    def __init__(self, call: ToolCall, outcomes: IOutcomes) -> None:
        self._call: ToolCall | None = call
        self._outcomes = outcomes

    def end(self, ending: Ending) -> None:
        call, self._call = self._call, None
        if call is not None:
            self._outcomes.ended(call, ending)

    def abandon(self) -> None:
        """Tell that the caller is answered although the code goes on."""
        reason = None if self._call is None else self._call.cancel_reason
        self.end(Ending("abandoned", None if reason is None else reason.value))


class OutcomeLayer(ILayer):
    """Stands where the record stands, outside of everything, so that refusals are told too."""

    def __init__(self, outcomes: IOutcomes) -> None:
        self._outcomes = outcomes

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Tell of every call, of whatever kind."""
        outcomes = self._outcomes

        async def noted(call: ToolCall) -> Any:
            visit = _Visit(call, outcomes)
            call.when_abandoned(visit.abandon)
            try:
                output = await call_next(call)
            except BaseException as error:
                stop = call.cancel_reason
                visit.end(ending_of(error) if stop is None else ending_of_stop(stop))
                raise
            stop = call.cancel_reason
            visit.end(DONE if stop is None else ending_of_stop(stop))
            return output

        return noted
