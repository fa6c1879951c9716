"""A log of calls: a layer around every tool writes it, a port takes it."""

import logging
import time
from dataclasses import dataclass
from typing import Any, Protocol

from axolotl_core import FeatureSpec, ILayer, Invoke, ToolCall, ToolError


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One call: which tool, for whom, how it ended and how long it took."""

    tool: str
    principal: str
    outcome: str
    seconds: float


class ICallLog(Protocol):
    """Keeps what happened."""

    def write(self, call: LoggedCall) -> None:
        """Take note of a call that has ended."""
        ...


class LoggingCallLog(ICallLog):
    """Writes a line for each call to a logger."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def write(self, call: LoggedCall) -> None:
        """Log the call."""
        milliseconds = 1000 * call.seconds
        self._logger.info("%s by %s: %s after %.1f ms", call.tool, call.principal, call.outcome, milliseconds)


class CallLogLayer(ILayer):
    """Notes every call that reaches its tool; what was refused before, for wrong arguments or a limit, did not."""

    def __init__(self, log: ICallLog) -> None:
        self._log = log

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put a stopwatch around the tool."""

        async def logged(call: ToolCall) -> Any:
            begin = time.perf_counter()
            outcome = "answered"
            try:
                return await call_next(call)
            except BaseException as error:
                outcome = _outcome_of(error, call)
                raise
            finally:
                seconds = time.perf_counter() - begin
                self._log.write(LoggedCall(spec.name, call.principal.subject, outcome, seconds))

        return logged


def _outcome_of(error: BaseException, call: ToolCall) -> str:
    if call.cancel_reason is not None:
        return f"stopped ({call.cancel_reason})"
    return "refused" if isinstance(error, ToolError) else "failed"
