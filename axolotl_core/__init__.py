"""What an author touches: tools, prompts and resources, their registries, context, content and errors."""

from axolotl_core.content import AppLink
from axolotl_core.policies.tool_rules import Approval, NotApproved
from axolotl_core.arguments import NoArguments
from axolotl_core.policies.audit import AuditRecord, IAuditSink, Sensitive
from axolotl_core.policies.access import Decision, IAuthorizer, decision_behind
from axolotl_core.calls.cancellation import CancelReason, CancellationToken
from axolotl_core.calls.cancellation import IClock, SystemClock
from axolotl_core.features.completion import Completion
from axolotl_core.content import Annotations, AudioContent, BlobResource, ContentBlock, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResource, ToolResult
from axolotl_core.calls.context import ToolContext
from axolotl_core.errors import AxolotlError, ConfigurationError, Declined, Forbidden, InputRequired, InvalidArguments, InvalidToken, MissingCapability, Overloaded, ProtocolError, QuotaExceeded, Refused, ResourceNotFound, ResultTooLarge, ToolCancelled, ToolError, ToolNotFound, ToolTimeout
from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_core.extension import Extension, ExtensionMethod, IExtension
from axolotl_core.features.feature import IFeature
from axolotl_core.questions.form_schema import Titles
from axolotl_core.prompts import FunctionPrompt, prompt, prompts_of
from axolotl_core.resources.resource import FunctionResource, FunctionResourceTemplate, resource, resources_of
from axolotl_core.tools.tool import FunctionTool, tool, tools_of
from axolotl_core.health import HealthStatus, IHealthCheck
from axolotl_core.policies.tool_rules import IResultStore, Idempotency, ResultStoreError
from axolotl_core.layers import ILayer, Invoke, ToolCall
from axolotl_core.names import INameRule
from axolotl_core.prompts import IPrompt, PromptMessage, PromptOutput, PromptResult
from axolotl_core.protocol.identity import Icon, Implementation, Principal
from axolotl_core.protocol.messages import LogLevel
from axolotl_core.protocol.messages import TraceContext
from axolotl_core.policies.quota import IQuotaStore, QuotaRule, QuotaStoreError, RateLimit, WindowLimit
from axolotl_core.registry import PromptRegistry, ResourceRegistry, ToolRegistry
from axolotl_core.policies.tool_rules import Breaker, Retry
from axolotl_core.resources.resource import CacheHint, IResource, IResourceTemplate, ResourceOutput
from axolotl_core.questions.question import Root
from axolotl_core.questions.sampling import ModelPreferences, Sample
from axolotl_core.questions.sampling import SamplingMessage, ToolOutcome, ToolUse
from axolotl_core.questions.sampling import SamplingTool
from axolotl_core.scanning import scan, scan_prompts, scan_resources
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_core.features.spec import FeatureSpec, Limits, ToolSpec
from axolotl_core.tools.tool import IStreamTool
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.tools.tool import ITool, ToolAnnotations

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
