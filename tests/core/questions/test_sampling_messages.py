"""Conversations with a model: serialization and rules."""

from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core.content import Annotations, AudioContent, EmbeddedResource, ImageContent, TextContent, TextResource
from axolotl_core.questions.sampling import SamplingMessage, ToolOutcome, ToolUse, sampling_question

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
            "user", (ToolOutcome("2", "7", is_error=True, meta={"m": 1}), ToolOutcome("1", (), Total(total=3)))
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


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        pytest.param([], "at least one message", id="none"),
        pytest.param([SamplingMessage("system", "x")], r"messages\[0\]\.role must be", id="role"),  # type: ignore[arg-type]
        pytest.param([SamplingMessage("user", [])], r"messages\[0\] has no content", id="empty"),
        pytest.param(
            [SamplingMessage("user", EmbeddedResource(TextResource("a:b", "c")))],  # type: ignore[arg-type]
            r"messages\[0\] contains EmbeddedResource",
            id="resource",
        ),
        pytest.param([SamplingMessage("user", USE)], "only the assistant uses tools", id="use-of-the-user"),
        pytest.param(
            [SamplingMessage("assistant", ToolOutcome("1", "3"))],
            "only the user reports outcomes",
            id="outcome-of-the-assistant",
        ),
        pytest.param(
            [SamplingMessage("assistant", USE), SamplingMessage("user", [ToolOutcome("1", "3"), TextContent("so")])],
            r"messages\[1\] mixes tool outcomes with other content",
            id="mixed",
        ),
        pytest.param(
            [SamplingMessage("assistant", USE), SamplingMessage("user", ToolOutcome("1", [TextResource("a:b", "c")]))],  # type: ignore[list-item]
            r"messages\[1\] contains a ToolOutcome whose content is neither",
            id="no-block",
        ),
        pytest.param(
            [SamplingMessage("assistant", [USE, OTHER_USE]), SamplingMessage("user", ToolOutcome("1", "3"))],
            r"messages\[1\] must answer .* expected \['1', '2'\], got \['1'\]",
            id="one-unanswered",
        ),
        pytest.param(
            [SamplingMessage("assistant", USE), SamplingMessage("user", "well?")],
            r"messages\[1\] must answer",
            id="text-instead-of-an-outcome",
        ),
        pytest.param(
            [SamplingMessage("user", ToolOutcome("1", "3"))], r"messages\[0\] must answer", id="outcome-of-nothing"
        ),
        pytest.param(
            [SamplingMessage("assistant", USE), SamplingMessage("user", [ToolOutcome("1", "3")] * 2)],
            r"messages\[1\] must answer",
            id="answered-twice",
        ),
        pytest.param([SamplingMessage("assistant", [USE, USE])], "two tool uses with the same ID", id="same-id"),
        pytest.param([SamplingMessage("assistant", USE)], "has tool uses without an outcome", id="open-end"),
    ],
)
def test_a_conversation_must_be_one(messages: Any, problem: str) -> None:
    """The author learns which message breaks which rule, before anything is sent."""
    with pytest.raises(ValueError, match=problem):
        sampling_question(messages, max_tokens=1)
