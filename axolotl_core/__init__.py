"""What an author touches: tools, prompts and resources, their registries, context, content and errors."""

from axolotl_core.app_link import AppLink
from axolotl_core.approval import Approval, NotApproved
from axolotl_core.arguments import NoArguments
from axolotl_core.audit import AuditRecord, IAuditSink, Sensitive
from axolotl_core.authorization import Decision, IAuthorizer, decision_behind
from axolotl_core.cancellation import CancellationToken, CancelReason
from axolotl_core.clock import IClock, SystemClock
from axolotl_core.completion import Completion
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
    Declined,
    Forbidden,
    InputRequired,
    InvalidArguments,
    InvalidToken,
    MissingCapability,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    Refused,
    ResourceNotFound,
    ResultTooLarge,
    ToolCancelled,
    ToolError,
    ToolNotFound,
    ToolTimeout,
)
from axolotl_core.event_store import IEventStore, StoredEvent
from axolotl_core.extension import Extension, ExtensionMethod, IExtension
from axolotl_core.feature import IFeature
from axolotl_core.form_schema import Titles
from axolotl_core.function_prompt import FunctionPrompt, prompt, prompts_of
from axolotl_core.function_resource import FunctionResource, FunctionResourceTemplate, resource, resources_of
from axolotl_core.function_tool import FunctionTool, tool, tools_of
from axolotl_core.health import HealthStatus, IHealthCheck
from axolotl_core.idempotency import Idempotency, IResultStore, ResultStoreError
from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.name_rule import INameRule
from axolotl_core.prompt import IPrompt, PromptMessage, PromptOutput, PromptResult
from axolotl_core.protocol.identity import Icon, Implementation, Principal
from axolotl_core.protocol.levels import LogLevel
from axolotl_core.protocol.tracing import TraceContext
from axolotl_core.quota import IQuotaStore, QuotaRule, QuotaStoreError, RateLimit, WindowLimit
from axolotl_core.registry import PromptRegistry, ResourceRegistry, ToolRegistry
from axolotl_core.resilience import Breaker, Retry
from axolotl_core.resource import CacheHint, IResource, IResourceTemplate, ResourceOutput
from axolotl_core.roots import Root
from axolotl_core.sampling import ModelPreferences, Sample
from axolotl_core.sampling_messages import SamplingMessage, ToolOutcome, ToolUse
from axolotl_core.sampling_tools import SamplingTool
from axolotl_core.scanning import scan, scan_prompts, scan_resources
from axolotl_core.schema_tool import SchemaTool
from axolotl_core.spec import FeatureSpec, Limits, ToolSpec
from axolotl_core.stream_tool import IStreamTool
from axolotl_core.token_verifier import ITokenVerifier
from axolotl_core.tool import ITool, ToolAnnotations

__all__ = [
    "Annotations",
    "AppLink",
    "Approval",
    "AudioContent",
    "AuditRecord",
    "AxolotlError",
    "BlobResource",
    "Breaker",
    "CacheHint",
    "CancelReason",
    "CancellationToken",
    "Completion",
    "ConfigurationError",
    "ContentBlock",
    "Decision",
    "Declined",
    "EmbeddedResource",
    "Extension",
    "ExtensionMethod",
    "FeatureSpec",
    "Forbidden",
    "FunctionPrompt",
    "FunctionResource",
    "FunctionResourceTemplate",
    "FunctionTool",
    "HealthStatus",
    "IAuditSink",
    "IAuthorizer",
    "IClock",
    "IEventStore",
    "IExtension",
    "IFeature",
    "IHealthCheck",
    "ILayer",
    "INameRule",
    "IPrompt",
    "IQuotaStore",
    "IResource",
    "IResourceTemplate",
    "IResultStore",
    "IStreamTool",
    "ITokenVerifier",
    "ITool",
    "Icon",
    "Idempotency",
    "ImageContent",
    "Implementation",
    "InputRequired",
    "InvalidArguments",
    "InvalidToken",
    "Invoke",
    "Limits",
    "LogLevel",
    "MissingCapability",
    "ModelPreferences",
    "NoArguments",
    "NotApproved",
    "Overloaded",
    "Principal",
    "PromptMessage",
    "PromptOutput",
    "PromptRegistry",
    "PromptResult",
    "ProtocolError",
    "QuotaExceeded",
    "QuotaRule",
    "QuotaStoreError",
    "RateLimit",
    "Refused",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceOutput",
    "ResourceRegistry",
    "ResultStoreError",
    "ResultTooLarge",
    "Retry",
    "Root",
    "Sample",
    "SamplingMessage",
    "SamplingTool",
    "SchemaTool",
    "Sensitive",
    "StoredEvent",
    "SystemClock",
    "TextContent",
    "TextResource",
    "Titles",
    "ToolAnnotations",
    "ToolCall",
    "ToolCancelled",
    "ToolContext",
    "ToolError",
    "ToolNotFound",
    "ToolOutcome",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "ToolTimeout",
    "ToolUse",
    "TraceContext",
    "WindowLimit",
    "decision_behind",
    "prompt",
    "prompts_of",
    "resource",
    "resources_of",
    "scan",
    "scan_prompts",
    "scan_resources",
    "tool",
    "tools_of",
]
