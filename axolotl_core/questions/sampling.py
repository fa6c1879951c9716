"""Sampling: requests to the client's model, their messages, content blocks and tools."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict

import msgspec
from msgspec import UNSET
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from axolotl_core.content import AudioContent, ContentBlock, ImageContent, TextContent
from axolotl_core.questions.question import Question, invalid_shape
from axolotl_core.schema import JsonSchema, schema_of

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool


class SamplingTool(msgspec.Struct, frozen=True):
    """A tool that the model can request. The code that called `sample` runs it."""

    name: str
    input_schema: JsonSchema
    description: str = ""
    title: str | None = None

    @classmethod
    def of(cls, name: str, arguments: type[BaseModel], description: str = "") -> "SamplingTool":
        """Describe a tool by the pydantic model of its arguments."""
        return cls(name, schema_of(arguments, "validation"), description)


AnySamplingTool: TypeAlias = "SamplingTool | ITool[Any, Any]"


def serialize_tools(tools: Sequence[AnySamplingTool]) -> list[Mapping[str, Any]]:
    """Serialize tools.

    Raises:
        ValueError: if two have the same name, or an input schema is not an object.
    """
    names = [tool.name for tool in tools]
    if len(set(names)) != len(names):
        raise ValueError(f"Two tools have the same name: {names}")
    for tool in tools:
        if tool.input_schema.get("type") != "object":
            raise ValueError(f'The input schema of the tool {tool.name!r} must have "type": "object"')
    return [
        _given(name=tool.name, inputSchema=tool.input_schema, title=tool.title, description=tool.description or None)
        for tool in tools
    ]


def _given(**members: Any) -> dict[str, Any]:
    return {name: member for name, member in members.items() if member is not None}


Role: TypeAlias = Literal["user", "assistant"]


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="tool_use"):
    """A request of the model to run a tool. The code that called `sample` runs it."""

    id: str
    name: str
    input: Mapping[str, Any]
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class ToolUseResult(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="tool_result"
):
    """The result of a tool that the model requested."""

    tool_use_id: str
    content: str | Sequence[ContentBlock]
    """What the model reads. A string is a text block."""
    structured: Any = msgspec.field(default=UNSET, name="structuredContent")
    """A JSON value or a pydantic model. `UNSET` leaves it out."""
    is_error: bool = False
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


SampleBlock: TypeAlias = TextContent | ImageContent | AudioContent | ToolUse
"""Content that a model generates."""
SamplingBlock: TypeAlias = SampleBlock | ToolUseResult
"""Content that a model reads."""


class SamplingMessage(msgspec.Struct, frozen=True):
    """One message of the conversation. A string is a text block."""

    role: Role
    content: str | SamplingBlock | Sequence[SamplingBlock]
    meta: Mapping[str, Any] | None = None

    @property
    def blocks(self) -> tuple[SamplingBlock, ...]:
        """The content as blocks."""
        content = self.content
        if isinstance(content, str):
            return (TextContent(content),)
        return (content,) if isinstance(content, msgspec.Struct) else tuple(content)


def serialize_messages(messages: Sequence[SamplingMessage]) -> list[Mapping[str, Any]]:
    """Serialize messages. A single block is not put into a list, because older revisions do not allow lists."""
    written: list[Mapping[str, Any]] = []
    for message in messages:
        blocks = [
            msgspec.structs.replace(block, content=[TextContent(block.content)])
            if isinstance(block, ToolUseResult) and isinstance(block.content, str)
            else block
            for block in message.blocks
        ]
        meta = {} if message.meta is None else {"_meta": message.meta}
        written.append({"role": message.role, "content": blocks[0] if len(blocks) == 1 else blocks, **meta})
    return written


IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"]


class ModelPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """Preferences for the choice of the model, which the client makes. Priorities are 0 to 1."""

    hints: Sequence[str] = ()
    """Names of models, or parts of names, the best first."""
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.hints, str):
            raise ValueError("hints must be a list of names, not a string")
        for priority in (self.cost_priority, self.speed_priority, self.intelligence_priority):
            if priority is not None and not 0 <= priority <= 1:
                raise ValueError(f"A priority must be between 0 and 1, not {priority!r}")

    @property
    def _as_params(self) -> Mapping[str, Any]:
        """The preferences as the protocol has them."""
        return _given(
            hints=[{"name": hint} for hint in self.hints] or None,
            costPriority=self.cost_priority,
            speedPriority=self.speed_priority,
            intelligencePriority=self.intelligence_priority,
        )


class SamplingOptions(TypedDict, total=False):
    """The options of `sample`."""

    max_tokens: Required[int]
    system_prompt: str | None
    temperature: float | None
    stop_sequences: Sequence[str]
    model_preferences: ModelPreferences | None
    include_context: IncludeContext | None
    metadata: Mapping[str, Any] | None
    tools: Sequence[AnySamplingTool]
    tool_choice: ToolChoice | None


class Sample(msgspec.Struct, frozen=True):
    """The message that the model generated."""

    role: Role
    content: tuple[SampleBlock, ...]
    model: str
    stop_reason: str | None = None
    """Why the model stopped, such as endTurn, stopSequence, maxTokens or toolUse."""

    @property
    def text(self) -> str:
        """The text, with one line per text block."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tools that the model requests."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))

    @property
    def message(self) -> SamplingMessage:
        """The answer as a message, to continue the conversation."""
        return SamplingMessage(self.role, self.content)


class _CreatedMessage(msgspec.Struct, rename="camel"):
    role: Role
    content: SampleBlock | tuple[SampleBlock, ...]
    model: str
    stop_reason: str | None = None


def sampling_question(
    messages: str | Sequence[SamplingMessage],
    *,
    max_tokens: int,
    system_prompt: str | None = None,
    temperature: float | None = None,
    stop_sequences: Sequence[str] = (),
    model_preferences: ModelPreferences | None = None,
    include_context: IncludeContext | None = None,
    metadata: Mapping[str, Any] | None = None,
    tools: Sequence[AnySamplingTool] = (),
    tool_choice: ToolChoice | None = None,
) -> Question:
    """Ask the client's model to continue a conversation. A string is a message of the user.

    Raises:
        ValueError: if two tools have the same name, or an input schema is not an object.
    """
    conversation = [SamplingMessage("user", messages)] if isinstance(messages, str) else list(messages)
    if isinstance(stop_sequences, str):
        raise ValueError("stop_sequences must be a list of strings, not a string")
    params = _given(
        messages=serialize_messages(conversation),
        maxTokens=max_tokens,
        systemPrompt=system_prompt,
        temperature=temperature,
        stopSequences=list(stop_sequences) or None,
        modelPreferences=model_preferences and model_preferences._as_params,
        includeContext=include_context,
        metadata=metadata,
        tools=serialize_tools(tools) or None,
        toolChoice=tool_choice and {"mode": tool_choice},
    )
    uses_tools = any(isinstance(block, ToolUse) for message in conversation for block in message.blocks)
    required: dict[str, Any] = {"tools": {}} if tools or uses_tools else {}
    if include_context in ("thisServer", "allServers"):
        required["context"] = {}
    return Question(
        method="sampling/createMessage",
        # blocks and models as plain JSON, and bytes as base64
        params=to_jsonable_python(msgspec.to_builtins(params, enc_hook=to_jsonable_python)),
        requires={"sampling": required},
    )


def read_sample(response: Any) -> Sample:
    """Parse the answer of a model.

    Raises:
        InvalidAnswer: if it is malformed.
    """
    try:
        created = msgspec.convert(response, _CreatedMessage)
    except msgspec.ValidationError as error:
        raise invalid_shape(error) from None
    content = created.content if isinstance(created.content, tuple) else (created.content,)
    return Sample(created.role, content, created.model, created.stop_reason)
