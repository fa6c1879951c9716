"""A conversation with the client's model: its blocks and messages, and the order they must have."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.content import AudioContent, ContentBlock, ImageContent, TextContent
from axolotl_core.output import BLOCKS

__all__ = [
    "Role",
    "SampleBlock",
    "SamplingBlock",
    "SamplingMessage",
    "ToolOutcome",
    "ToolUse",
    "check_conversation",
    "written_messages",
]

Role: TypeAlias = Literal["user", "assistant"]


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="tool_use"):
    """The model wants a tool to be run, by whoever asked it."""

    id: str
    name: str
    input: Mapping[str, Any]
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class ToolOutcome(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="tool_result"):
    """What came of a tool that the model wanted to be run."""

    tool_use_id: str
    content: str | Sequence[ContentBlock]
    """What the model is told; plain text stands for a block of it."""
    structured: Any = msgspec.field(default=UNSET, name="structuredContent")
    """Any JSON value or pydantic model; `UNSET` leaves it out."""
    is_error: bool = False
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


SampleBlock: TypeAlias = TextContent | ImageContent | AudioContent | ToolUse
"""What a model answers."""
SamplingBlock: TypeAlias = SampleBlock | ToolOutcome
"""What a model is told."""

_BLOCKS: Final = (TextContent, ImageContent, AudioContent, ToolUse, ToolOutcome)


class SamplingMessage(msgspec.Struct, frozen=True):
    """One turn of the conversation; plain text stands for a block of it."""

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


def written_messages(messages: Sequence[SamplingMessage]) -> list[Mapping[str, Any]]:
    """Write checked messages in the latest form; a single block stands alone, as every revision reads it."""
    return [_written_message(message) for message in messages]


def check_conversation(messages: Sequence[SamplingMessage]) -> None:
    """Compare messages with the protocol's rules.

    Raises:
        ValueError: if one has a wrong role or block, or if a tool use and its outcome do not follow each other.
    """
    if not messages:
        raise ValueError("A sample needs at least one message")
    open_uses: list[str] = []
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        _check_blocks(place, message)
        outcomes = [block.tool_use_id for block in message.blocks if isinstance(block, ToolOutcome)]
        if sorted(outcomes) != sorted(open_uses):
            raise ValueError(
                f"{place} must answer the tool uses of the message before it: expected {open_uses}, got {outcomes}"
            )
        open_uses = [block.id for block in message.blocks if isinstance(block, ToolUse)]
        if len(set(open_uses)) != len(open_uses):
            raise ValueError(f"{place} has two tool uses of the same id: {open_uses}")
    if open_uses:
        raise ValueError(f"The last message leaves tool uses without an outcome: {open_uses}")


def _check_blocks(place: str, message: SamplingMessage) -> None:
    blocks = message.blocks
    if message.role not in ("user", "assistant"):
        raise ValueError(f'{place}.role must be "user" or "assistant"')
    if not blocks:
        raise ValueError(f"{place} has no content")
    for block in blocks:
        _check_block(place, block, message.role)
    outcomes = sum(isinstance(block, ToolOutcome) for block in blocks)
    if 0 < outcomes < len(blocks):
        raise ValueError(f"{place} mixes tool outcomes with other content: put that into a message of its own")


def _check_block(place: str, block: SamplingBlock, role: Role) -> None:
    if not isinstance(block, _BLOCKS):
        raise ValueError(f"{place} holds {type(block).__name__}: a model is told text, images, audio and tool outcomes")
    if isinstance(block, ToolUse) and role != "assistant":
        raise ValueError(f"{place} holds a ToolUse: only the assistant uses tools")
    if isinstance(block, ToolOutcome):
        if role != "user":
            raise ValueError(f"{place} holds a ToolOutcome: only the user tells what came of a tool")
        if not isinstance(block.content, str) and not all(isinstance(one, BLOCKS) for one in block.content):
            raise ValueError(f"{place} holds a ToolOutcome whose content is no text and no list of content blocks")


def _written_message(message: SamplingMessage) -> Mapping[str, Any]:
    blocks = [_written_block(block) for block in message.blocks]
    written: dict[str, Any] = {"role": message.role, "content": blocks[0] if len(blocks) == 1 else blocks}
    return written if message.meta is None else {**written, "_meta": message.meta}


def _written_block(block: SamplingBlock) -> SamplingBlock:
    if isinstance(block, ToolOutcome) and isinstance(block.content, str):
        return msgspec.structs.replace(block, content=[TextContent(block.content)])
    return block
