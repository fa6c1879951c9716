"""The stateless revision: every request says what it needs to be understood."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET

from axolotl_core.errors import (
    HeaderMismatch,
    InvalidEnvelope,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    ProtocolError,
    ResourceNotFound,
    ToolNotFound,
    UnsupportedVersion,
)
from axolotl_core.layer import ToolCall
from axolotl_core.protocol import codes
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.levels import LEVELS
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import STATELESS_REVISIONS, Revision
from axolotl_core.protocol.wire import encode
from axolotl_core.resource import CacheHint
from axolotl_server.eras.asking import AskingInRounds
from axolotl_server.eras.base import IEra, Methods
from axolotl_server.eras.mirrored import check_mirrored
from axolotl_server.request import Request
from axolotl_server.settings import ProtocolSettings

__all__ = ["ModernEra"]

_SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
_BAD_REQUESTS: Final = (
    HeaderMismatch,
    InvalidEnvelope,
    InvalidRequest,
    MissingCapability,
    ParseError,
    UnsupportedVersion,
)


class ModernEra(IEra):
    """One stateless revision."""

    cancel_on_disconnect = True

    asking: AskingInRounds

    def __init__(
        self,
        revision: Revision,
        methods: Methods,
        settings: ProtocolSettings,
        asking: AskingInRounds,
        *,
        identity: Implementation,
        list_hint: CacheHint,
    ) -> None:
        self.revision = revision
        self.methods = methods
        self.settings = settings
        self.asking = asking
        self._version = revision.name.encode()
        self._identity = identity
        server_info = encode({_SERVER_INFO_KEY: identity})
        self.tail = b',"resultType":"complete","_meta":%b}' % server_info
        self.list_tail = self.kept_tail(list_hint)
        self._questions_tail = b',"resultType":"input_required","_meta":%b}' % server_info

    def admit(self, request: Request) -> None:
        """Climb the ladder of checks in the protocol's order: envelope, headers, version."""
        meta = request.head.params.meta
        if meta is UNSET or meta.version is UNSET or meta.capabilities is UNSET:
            raise InvalidEnvelope(
                f"Invalid params: params._meta must hold {PROTOCOL_VERSION_KEY} and {CLIENT_CAPABILITIES_KEY}"
            )
        headers, head = request.exchange.headers, request.head
        if headers is not None and not (
            head.method == "tools/call"
            and headers.get(b"mcp-method") == b"tools/call"
            and headers.get(b"mcp-protocol-version") == self._version
            and meta.version == self.revision.name
            and head.params.name is not UNSET
            and headers.get(b"mcp-name") == head.params.name.encode()
        ):
            check_mirrored(headers, head, meta.version, request.data)
        if meta.version != self.revision.name:
            raise UnsupportedVersion(meta.version, [revision.name for revision in STATELESS_REVISIONS])
        if meta.log_level is not UNSET and meta.log_level not in LEVELS and head.method in self.methods:
            raise InvalidParams(f"Invalid params: {LOG_LEVEL_KEY} must be one of {', '.join(LEVELS)}")

    def closing(self, meta: Mapping[str, Any]) -> bytes:
        """Close a result with the tool's own `_meta` beside the server's."""
        return b',"resultType":"complete","_meta":%b}' % encode({**meta, _SERVER_INFO_KEY: self._identity})

    def kept_tail(self, hint: CacheHint) -> bytes:
        """Say how long the result may be kept, and by whom."""
        return b',"ttlMs":%d,"cacheScope":"%b"%b' % (round(hint.ttl_seconds * 1000), hint.scope.encode(), self.tail)

    def open_rounds(self, request: Request, call: ToolCall) -> None:
        """Unseal the state, whether the code will ask for it or not."""
        self.asking.open(request, call)

    def input_required(self, request: Request, call: ToolCall) -> bytes:
        """Ask by means of the result."""
        return self.asking.result(request, call) + self._questions_tail

    def code_of(self, error: ProtocolError) -> int:
        """What is not there is a wrong parameter here: an unknown method would mean HTTP 404."""
        if isinstance(error, ToolNotFound) and self.settings.unknown_tool != "method_not_found":
            return codes.INVALID_PARAMS
        if isinstance(error, ResourceNotFound):
            return codes.INVALID_PARAMS
        return error.code

    def status_of(self, error: ProtocolError) -> int:
        """Wrong requests are 400, unknown methods 404; what goes wrong inside a method is told by the body alone."""
        if isinstance(error, _BAD_REQUESTS):
            return 400
        return 404 if isinstance(error, MethodNotFound) else 200
