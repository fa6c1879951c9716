"""The era of the revisions with a handshake, whose state belongs to the connection."""

from collections.abc import Mapping
from typing import Any

from axolotl_core.errors import (
    InvalidEnvelope,
    InvalidParams,
    InvalidRequest,
    MissingCapability,
    ParseError,
    ProtocolError,
    ToolNotFound,
)
from axolotl_core.protocol import codes
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.wire import encode
from axolotl_core.resources.resource import CacheHint
from axolotl_server.protocol.eras.era import IEra
from axolotl_server.protocol.request import Request

_ANY_TIME = frozenset({"initialize", "ping"})


class HandshakeEra(IEra):
    """A revision with a handshake."""

    cancel_on_disconnect = False

    def admit(self, request: Request) -> None:
        """Refuse requests before the handshake, and before its confirmation if the settings require one."""
        connection, method = request.connection, request.head.method
        if connection is not None and connection.initialized:
            return
        if method in _ANY_TIME:
            return
        if connection is None or connection.era is None:
            raise InvalidParams(
                f"{method} before initialize: begin with initialize, or send {PROTOCOL_VERSION_KEY} and "
                f"{CLIENT_CAPABILITIES_KEY} in params._meta of every request"
            )
        if self.settings.require_initialized:
            raise InvalidParams(f"{method} before the connection is ready: send notifications/initialized first")

    def tail_with_meta(self, meta: Mapping[str, Any] | None) -> bytes:
        return b"}" if meta is None else b',"_meta":%b}' % encode(meta)

    def cacheable_tail(self, hint: CacheHint) -> bytes:
        return self.tail

    def code_of(self, error: ProtocolError) -> int:
        # An unknown tool is an unknown method here, unless the settings choose the other code.
        if isinstance(error, ToolNotFound) and self.settings.unknown_tool == "invalid_params":
            return codes.INVALID_PARAMS
        if isinstance(error, MissingCapability):
            return codes.INVALID_REQUEST  # its own code is new in the stateless revision
        return error.code

    def status_of(self, error: ProtocolError) -> int:
        """Give 400 to messages that are not valid; 404 would mean that the session is gone."""
        return 400 if isinstance(error, ParseError | InvalidRequest | InvalidEnvelope) else 200
