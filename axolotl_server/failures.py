"""What a caller is told when something failed that is not its business: a correlation id, and nothing else."""

import logging
import secrets

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InternalError, ToolCancelled, ToolError, ToolFailed, ToolTimeout
from axolotl_core.layer import ToolCall

__all__ = ["describe_stop", "hide", "hide_internal"]

_log = logging.getLogger("axolotl")


def hide(error: BaseException, call: ToolCall) -> ToolFailed:
    """Log what a tool raised, with its traceback, and give the text that may leave the process."""
    reference = call.reference = call.reference or secrets.token_hex(8)
    kind, name = call.spec.kind, call.spec.name
    _log.error("%s %s failed, reference %s", kind, name, reference, exc_info=error, extra={"axolotl_call": call})
    return ToolFailed(f"{_named(call)} failed. Reference: {reference}", meta={"reference": reference})


def hide_internal(error: BaseException, method: str) -> InternalError:
    """Log a failure of the server itself and give the error that may leave the process."""
    reference = secrets.token_hex(8)
    _log.error("%s failed, reference %s", method, reference, exc_info=error)
    return InternalError(f"Internal error. Reference: {reference}", data={"reference": reference})


def describe_stop(call: ToolCall) -> ToolError:
    """Say why a call was ended by the server."""
    if call.cancel_reason is CancelReason.TIMEOUT:
        seconds = call.spec.limits.timeout_seconds
        return ToolTimeout(f"{_named(call)} did not finish within {seconds:g} seconds", meta={"reason": "timeout"})
    return ToolCancelled(
        f"{_named(call)} was stopped because the server is shutting down; try again",
        meta={"reason": "shutdown", "retryAfterMs": 1000},
    )


def _named(call: ToolCall) -> str:
    return f"{call.spec.kind.title()} {call.spec.name}"
