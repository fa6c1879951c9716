"""A call log: a layer around every tool, and the port that it writes to."""

import logging
import time
from dataclasses import dataclass
from typing import Any, Protocol

from axolotl_core import ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A finished call."""

    tool: str
    principal: str
    outcome: str
    seconds: float


class ICallLog(Protocol):
    """Stores finished calls."""

    def write(self, call: LoggedCall) -> None:
        """Store a finished call."""
        ...


class LoggingCallLog(ICallLog):
    """Writes one line per call to a logger."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def write(self, call: LoggedCall) -> None:
        milliseconds = 1000 * call.seconds
        self._logger.info("%s by %s: %s after %.1f ms", call.tool, call.principal, call.outcome, milliseconds)


class CallLogLayer(ILayer):
    """Logs every call that reaches its tool. Calls rejected earlier, for example by a limit, are not logged."""

    def __init__(self, log: ICallLog) -> None:
        self._log = log

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:

        async def logged(call: Call) -> Any:
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


def _outcome_of(error: BaseException, call: Call) -> str:
    if call.cancel_reason is not None:
        return f"stopped ({call.cancel_reason})"
    return "refused" if isinstance(error, ToolError) else "failed"
