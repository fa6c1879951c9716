"""Conversations with a model: serialization and rules."""

from typing import Any

from pydantic import BaseModel

from axolotl_core.content import Annotations, AudioContent, ImageContent, TextContent
from axolotl_core.questions.sampling import SamplingMessage, ToolUse, ToolUseResult, sampling_question

USE = ToolUse("1", "add", {"a": 1, "b": 2})
OTHER_USE = ToolUse("2", "add", {"a": 3, "b": 4})


def messages_of(*messages: SamplingMessage) -> Any:
    """Return the messages as the client receives them."""
    return sampling_question(messages, max_tokens=1).params["messages"]


def test_blocks_have_the_form_of_the_protocol() -> None:
    """A single block is not in a list, several are; bytes are base64."""
    written = messages_of(
        SamplingMessage("user", ImageContent(b"\x00\xff", "image/png"), meta={"m": 1}),
        SamplingMessage("assistant", [TextContent("a", Annotations(priority=1.0)), AudioContent(b"\x01", "audio/wav")]),
    )
    assert written == [
        {"role": "user", "content": {"type": "image", "data": "AP8=", "mimeType": "image/png"}, "_meta": {"m": 1}},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a", "annotations": {"priority": 1.0}},
                {"type": "audio", "data": "AQ==", "mimeType": "audio/wav"},
            ],
        },
    ]


def test_outcomes_of_tools_have_the_form_of_the_protocol() -> None:
    """A string is a text block, a model is structured content; unset fields are left out."""

    class Total(BaseModel):
        total: int

    _, written = messages_of(
        SamplingMessage("assistant", (USE, OTHER_USE)),
        SamplingMessage(
            "user", (ToolUseResult("2", "7", is_error=True, meta={"m": 1}), ToolUseResult("1", (), Total(total=3)))
        ),
    )
    assert written["content"] == [
        {
            "type": "tool_result",
            "toolUseId": "2",
            "content": [{"type": "text", "text": "7"}],
            "isError": True,
            "_meta": {"m": 1},
        },
        {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": {"total": 3}},
    ]
