"""Framing what a request is answered with."""

from typing import Final

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.wire import error_message
from axolotl_server.eras.base import IEra
from axolotl_server.failures import hide_internal
from axolotl_server.peer import IExchange

__all__ = ["RESULT", "error_reply"]

RESULT: Final = b'{"jsonrpc":"2.0","id":%b,"result":%b}'
"""The frame of a result, to be filled in with the encoded id and the result."""


def error_reply(error: ProtocolError, request_id: RequestId | None, era: IEra, exchange: IExchange) -> bytes:
    """Frame an error, and give the exchange the HTTP status that goes with it."""
    exchange.status = error.status or era.status_of(error)
    try:
        return error_message(request_id, error, era.code_of(error))
    except Exception as unwritable:  # a tool may raise a protocol error with anything in it
        hidden = hide_internal(unwritable, "writing an error")
        return error_message(request_id, hidden, hidden.code)
