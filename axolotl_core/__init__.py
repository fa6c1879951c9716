"""What a tool author touches: tools, their registry, context, content and errors."""

from axolotl_core.arguments import NoArguments
from axolotl_core.cancellation import CancellationToken, CancelReason
from axolotl_core.content import (
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResource,
    ToolResult,
)
from axolotl_core.context import ToolContext
from axolotl_core.errors import (
    AxolotlError,
    ConfigurationError,
    Forbidden,
    InvalidArguments,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    Refused,
    ToolCancelled,
    ToolError,
    ToolNotFound,
    ToolTimeout,
)
from axolotl_core.function_tool import FunctionTool, tool, tools_of
from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.name_rule import INameRule
from axolotl_core.protocol.identity import Icon, Implementation, Principal
from axolotl_core.registry import ToolRegistry
from axolotl_core.scanning import scan
from axolotl_core.schema_tool import SchemaTool
from axolotl_core.spec import ToolLimits, ToolSpec
from axolotl_core.stream_tool import IStreamTool
from axolotl_core.tool import ITool, ToolAnnotations

__all__ = [
    "Annotations",
    "AudioContent",
    "AxolotlError",
    "BlobResource",
    "CancelReason",
    "CancellationToken",
    "ConfigurationError",
    "ContentBlock",
    "EmbeddedResource",
    "Forbidden",
    "FunctionTool",
    "ILayer",
    "INameRule",
    "IStreamTool",
    "ITool",
    "Icon",
    "ImageContent",
    "Implementation",
    "InvalidArguments",
    "Invoke",
    "NoArguments",
    "Overloaded",
    "Principal",
    "ProtocolError",
    "QuotaExceeded",
    "Refused",
    "ResourceLink",
    "SchemaTool",
    "TextContent",
    "TextResource",
    "ToolAnnotations",
    "ToolCall",
    "ToolCancelled",
    "ToolContext",
    "ToolError",
    "ToolLimits",
    "ToolNotFound",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "ToolTimeout",
    "scan",
    "tool",
    "tools_of",
]
