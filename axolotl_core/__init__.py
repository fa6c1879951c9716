"""The names that most servers use; the rest is in the modules that the API reference names.

`axolotl_core.content` has what tools return, `axolotl_core.errors` all errors, `axolotl_core.layers` what layers need.
"""

from axolotl_core._version import __version__
from axolotl_core.arguments import NoArguments
from axolotl_core.calls.context import Context
from axolotl_core.errors import (
    AxolotlError,
    ConfigurationError,
    Declined,
    Forbidden,
    InvalidArguments,
    ProtocolError,
    Refused,
    ResourceNotFound,
    ToolError,
)
from axolotl_core.features.completion import Completion
from axolotl_core.prompts import IPrompt, PromptMessage, prompt, prompts_of
from axolotl_core.protocol.identity import Principal
from axolotl_core.registry import PromptRegistry, ResourceRegistry, ToolRegistry
from axolotl_core.resources.resource import CacheHint, IResource, IResourceTemplate, resource, resources_of
from axolotl_core.scanning import scan
from axolotl_core.tools.tool import IStreamTool, ITool, ToolAnnotations, tool, tools_of

__all__ = [
    "AxolotlError",
    "CacheHint",
    "Completion",
    "ConfigurationError",
    "Context",
    "Declined",
    "Forbidden",
    "IPrompt",
    "IResource",
    "IResourceTemplate",
    "IStreamTool",
    "ITool",
    "InvalidArguments",
    "NoArguments",
    "Principal",
    "PromptMessage",
    "PromptRegistry",
    "ProtocolError",
    "Refused",
    "ResourceNotFound",
    "ResourceRegistry",
    "ToolAnnotations",
    "ToolError",
    "ToolRegistry",
    "__version__",
    "prompt",
    "prompts_of",
    "resource",
    "resources_of",
    "scan",
    "tool",
    "tools_of",
]
