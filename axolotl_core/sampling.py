"""Asking the client's model."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final, Literal, Required, TypeAlias, TypedDict

import msgspec
from pydantic_core import to_jsonable_python

from axolotl_core.content import TextContent
from axolotl_core.question import Question, invalid_shape
from axolotl_core.sampling_messages import (
    Role,
    SampleBlock,
    SamplingMessage,
    ToolOutcome,
    ToolUse,
    check_conversation,
    written_messages,
)
from axolotl_core.sampling_tools import ISamplingTool, SamplingTool, written_tools

__all__ = [
    "ISamplingTool",
    "IncludeContext",
    "ModelPreferences",
    "Sample",
    "SamplingMessage",
    "SamplingOptions",
    "SamplingTool",
    "ToolChoice",
    "ToolOutcome",
    "ToolUse",
    "read_sample",
    "sampling_question",
]

IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
ToolChoice: TypeAlias = Literal["auto", "required", "none"]

_CONTEXTS: Final = ("none", "thisServer", "allServers")
_CHOICES: Final = ("auto", "required", "none")


class ModelPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """Which model would suit; the client decides. Priorities go from 0 to 1."""

    hints: Sequence[str] = ()
    """Names or parts of names of models, the best first."""
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.hints, str):
            raise ValueError("hints must be a list of names, not one text")
        for priority in (self.cost_priority, self.speed_priority, self.intelligence_priority):
            if priority is not None and not 0 <= priority <= 1:
                raise ValueError(f"A priority of a model goes from 0 to 1, not {priority!r}")


class SamplingOptions(TypedDict, total=False):
    """What may be said about a sample beside the conversation."""

    max_tokens: Required[int]
    system_prompt: str | None
    temperature: float | None
    stop_sequences: Sequence[str]
    model_preferences: ModelPreferences | None
    include_context: IncludeContext | None
    metadata: Mapping[str, Any] | None
    tools: Sequence[ISamplingTool]
    tool_choice: ToolChoice | None


class Sample(msgspec.Struct, frozen=True):
    """What the model answered."""

    role: Role
    content: tuple[SampleBlock, ...]
    model: str
    stop_reason: str | None = None
    """Why it stopped, e.g. endTurn, stopSequence, maxTokens or toolUse."""

    @property
    def text(self) -> str:
        """The text of the answer; several blocks of it stand on lines of their own."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tools that the model wants to be run."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))

    @property
    def message(self) -> SamplingMessage:
        """The answer as a turn of the conversation that goes on."""
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
    tools: Sequence[ISamplingTool] = (),
    tool_choice: ToolChoice | None = None,
) -> Question:
    """Ask the client's model to go on with a conversation; plain text stands for one message of the user.

    Raises:
        ValueError: if the protocol does not allow it so.
    """
    conversation = [SamplingMessage("user", messages)] if isinstance(messages, str) else list(messages)
    check_conversation(conversation)
    if isinstance(stop_sequences, str):
        raise ValueError("stop_sequences must be a list of texts, not one text")
    _check_options(max_tokens, temperature, include_context, tools, tool_choice)
    params = {
        "messages": written_messages(conversation),
        "maxTokens": max_tokens,
        "systemPrompt": system_prompt,
        "temperature": temperature,
        "stopSequences": list(stop_sequences) or None,
        "modelPreferences": _written_preferences(model_preferences),
        "includeContext": include_context,
        "metadata": metadata,
        "tools": written_tools(tools) or None,
        "toolChoice": tool_choice and {"mode": tool_choice},
    }
    return Question(
        method="sampling/createMessage",
        params=_plain({key: value for key, value in params.items() if value is not None}),
        requires={"sampling": _required(conversation, tools, include_context)},
    )


def read_sample(response: Any) -> Sample:
    """Read a model's answer from a client's bare result.

    Raises:
        InvalidAnswer: if it is none.
    """
    try:
        created = msgspec.convert(response, _CreatedMessage)
    except msgspec.ValidationError as error:
        raise invalid_shape(error) from None
    content = created.content if isinstance(created.content, tuple) else (created.content,)
    return Sample(created.role, content, created.model, created.stop_reason)


def _check_options(
    max_tokens: int,
    temperature: float | None,
    include_context: str | None,
    tools: Sequence[ISamplingTool],
    tool_choice: str | None,
) -> None:
    if type(max_tokens) is not int or max_tokens < 1:
        raise ValueError("max_tokens must be a whole number of at least 1")
    if temperature is not None and not isfinite(temperature):
        raise ValueError("temperature must be a finite number")
    if include_context not in (None, *_CONTEXTS):
        raise ValueError(f"include_context must be one of {', '.join(_CONTEXTS)}")
    if tool_choice not in (None, *_CHOICES):
        raise ValueError(f"tool_choice must be one of {', '.join(_CHOICES)}")
    if tool_choice is not None and not tools:
        raise ValueError("tool_choice needs tools to choose from")


def _required(
    messages: Sequence[SamplingMessage], tools: Sequence[ISamplingTool], include_context: str | None
) -> Mapping[str, Any]:
    uses_tools = any(isinstance(block, ToolUse) for message in messages for block in message.blocks)
    required: dict[str, Any] = {"tools": {}} if tools or uses_tools else {}
    if include_context in ("thisServer", "allServers"):
        required["context"] = {}
    return required


def _written_preferences(preferences: ModelPreferences | None) -> Mapping[str, Any] | None:
    if preferences is None:
        return None
    written = {
        "hints": [{"name": hint} for hint in preferences.hints] or None,
        "costPriority": preferences.cost_priority,
        "speedPriority": preferences.speed_priority,
        "intelligencePriority": preferences.intelligence_priority,
    }
    return {key: value for key, value in written.items() if value is not None}


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Write blocks and models as plain JSON, bytes as base64."""
    plain: dict[str, Any] = to_jsonable_python(msgspec.to_builtins(params, enc_hook=to_jsonable_python))
    return plain
