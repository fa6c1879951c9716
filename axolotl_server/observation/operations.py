"""One request of a client, from the moment when its method is known to its answer."""

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import ProtocolError
from axolotl_core.layer import ToolCall
from axolotl_core.protocol import codes
from axolotl_server.request import Request

if TYPE_CHECKING:
    from axolotl_server.observation.spans import OperationSpan

__all__ = ["FINE", "Failure", "Operation", "failure_of_error", "failure_of_result", "failure_of_stop"]

_CALL: Final = "tools/call"
_LISTEN: Final = "subscriptions/listen"
_INTERNAL: Final = str(codes.INTERNAL_ERROR)
_IS_ERROR: Final = b'"isError":true'


class Failure(NamedTuple):
    """What an operation failed with, in the words of the conventions for MCP; empty where it did not."""

    error_type: str = ""
    code: str = ""
    """The JSON-RPC code of the answer, where that is an error."""


FINE: Final = Failure()
_TOOL_ERROR: Final = Failure("tool_error")
_CANCELLED: Final = Failure("cancelled")
_HIDDEN: Final = Failure(_INTERNAL, _INTERNAL)


class Operation:
    """A request that is being answered."""

    __slots__ = ("began", "call", "method", "outcome", "request", "span")

    def __init__(self, method: str, request: Request) -> None:
        self.began = perf_counter()
        self.method = method
        """As it was registered; `_unknown` for any other."""
        self.request = request
        self.call: ToolCall | None = None
        """What was run for it, once that is over."""
        self.outcome = ""
        self.span: OperationSpan | None = None


class _Told(msgspec.Struct, rename="camel"):
    is_error: bool = False


_read_told: Final = msgspec.json.Decoder(_Told).decode


def failure_of_error(error: BaseException, request: Request) -> Failure:
    """Tell how the handler will answer what a method raised."""
    if isinstance(error, ProtocolError):
        code = str(request.era.code_of(error))
        return Failure(code, code)
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return _CANCELLED
    return _HIDDEN


def failure_of_result(method: str, result: bytes | None) -> Failure:
    """Look whether a result is one that tells of an error, or none because its caller is gone."""
    if result is None:
        return FINE if method == _LISTEN else _CANCELLED
    # The first look is quick, and right unless the output of a tool has a member of that name.
    if method == _CALL and _IS_ERROR in result and _read_told(result).is_error:
        return _TOOL_ERROR
    return FINE


def failure_of_stop(method: str, call: ToolCall) -> Failure:
    """Tell how a call is answered whose code goes on for nobody."""
    if call.cancel_reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
        return _CANCELLED
    return _TOOL_ERROR if method == _CALL else _HIDDEN
