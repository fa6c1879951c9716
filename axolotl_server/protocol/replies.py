"""The replies to requests: frames, hidden failures, reasons of stopped calls."""

import logging
import secrets
from math import ceil
from typing import TYPE_CHECKING, Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import (
    InternalError,
    OutputError,
    ProtocolError,
    RequestCancelled,
    ToolCancelled,
    ToolError,
    ToolFailed,
    ToolTimeout,
)
from axolotl_core.layers import Call
from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.protocol.wire import encode, error_message

if TYPE_CHECKING:
    from axolotl_server.protocol.connection import IExchange
    from axolotl_server.protocol.eras.era import IEra
    from axolotl_server.protocol.request import Request

_log = logging.getLogger("axolotl")


def hide(error: BaseException, call: Call) -> ToolFailed:
    """Log the exception of a tool with its traceback, and return an error that reveals nothing but a reference."""
    reference = call.reference = call.reference or secrets.token_hex(8)
    kind, name = call.spec.kind, call.spec.name
    if isinstance(error, OutputError):  # it was raised here, so its traceback has no line of the user's code
        _log.error("%s %s failed, reference %s: %s", kind, name, reference, error, extra={"axolotl_call": call})
    else:
        _log.error("%s %s failed, reference %s", kind, name, reference, exc_info=error, extra={"axolotl_call": call})
    return ToolFailed(
        f"{call.spec.label} failed. Reference: {reference}", meta=own_meta(reason=f"{kind}_error", reference=reference)
    )


def hide_internal(error: BaseException, method: str) -> InternalError:
    """Log a failure of the server with its traceback, and return an error that reveals nothing but a reference."""
    reference = secrets.token_hex(8)
    _log.error("%s failed, reference %s", method, reference, exc_info=error)
    return InternalError(
        f"Internal error. Reference: {reference}", data={"reason": "internal_error", "reference": reference}
    )


def describe_stop(call: Call) -> ToolError:
    """Make the error for a call that the server has stopped."""
    if call.cancel_reason is CancelReason.TIMEOUT:
        seconds = call.spec.limits.timeout_seconds
        return ToolTimeout(
            f"{call.spec.label} did not finish within {seconds:g} seconds", meta=own_meta(reason="timeout")
        )
    return ToolCancelled(
        f"{call.spec.label} was stopped because the server is shutting down; try again",
        meta=own_meta(reason="shutdown", retryAfterMs=1000),
    )


CALLER_LEFT: Final = (CancelReason.CLIENT, CancelReason.OPERATOR, CancelReason.DISCONNECT)
"""The reasons for which a caller expects no answer."""


def reply_to_nobody(request: "Request", reason: CancelReason | None) -> bytes | None:
    """Return None, the reply to a caller that has left; raise RequestCancelled if the caller needs a response.

    Over HTTP with a handshake, it needs one if it did not cancel the request, or would ask for the reply again.
    """
    exchange = request.exchange
    if exchange.headers is None or request.era.revision.stateless:
        return None
    if reason is not CancelReason.CLIENT or not exchange.end_silently():
        raise RequestCancelled
    return None


def frame(request_id: RequestId, result: bytes) -> bytes:
    """Make the message for an encoded result."""
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(request_id), b',"result":', result, b"}"))


_TRY_AGAIN: Final = (429, 503)


def error_reply(error: ProtocolError, request_id: RequestId | None, era: "IEra", exchange: "IExchange") -> bytes:
    """Frame an error, and set the HTTP status of the exchange."""
    exchange.status = error.status or era.status_of(error)
    if error.status in _TRY_AGAIN and isinstance(error.data, dict) and "retryAfterMs" in error.data:
        exchange.retry_after(ceil(error.data["retryAfterMs"] / 1000))
    try:
        return error_message(request_id, error, era.code_of(error))
    except Exception as unwritable:  # a tool may raise a ProtocolError with data that cannot be encoded
        hidden = hide_internal(unwritable, "writing an error")
        return error_message(request_id, hidden, hidden.code)
