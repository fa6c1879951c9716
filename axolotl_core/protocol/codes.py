"""JSON-RPC and MCP error codes."""

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""In revisions with a handshake; stateless ones use INVALID_PARAMS."""
REQUEST_CANCELLED: Final = -32800
"""Not defined by the protocol, but used by other servers, too."""
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
