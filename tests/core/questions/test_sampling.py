"""Sampling: questions and answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.content import Annotations, ImageContent, TextContent
from axolotl_core.questions.question import InvalidAnswer, Question
from axolotl_core.questions.sampling import (
    ModelPreferences,
    Sample,
    SamplingMessage,
    SamplingTool,
    ToolUse,
    ToolUseResult,
    read_sample,
    sampling_question,
)
from tests.support.core.json_values import JSON, mostly, objects
from tests.support.core.sample_tools import Add, Pair

USE = ToolUse("1", "add", {"a": 1, "b": 2})
OTHER_USE = ToolUse("2", "add", {"a": 3, "b": 4})
ADD_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


def messages_of(*messages: SamplingMessage) -> Any:
    """Return the messages as the client receives them."""
    return sampling_question(messages, max_tokens=1).params["messages"]


def test_a_text_is_one_message_of_the_user() -> None:
    """The minimal question has messages and maxTokens."""
    assert sampling_question("Why?", max_tokens=10) == Question(
        method="sampling/createMessage",
        params={"messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}], "maxTokens": 10},
        requires={"sampling": {}},
    )


def test_everything_can_be_said() -> None:
    """Each option has its place in the params."""
    question = sampling_question(
        "Why?",
        max_tokens=10,
        system_prompt="Be brief",
        temperature=0,
        stop_sequences=["."],
        model_preferences=ModelPreferences(
            hints=["sonnet", "claude"], cost_priority=0, speed_priority=0.5, intelligence_priority=1
        ),
        include_context="none",
        metadata={"vendor": {"x": (1, 2)}},
        tools=[SamplingTool("add", ADD_SCHEMA, "Adds", "Addition")],
        tool_choice="required",
    )
    assert question.params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}],
        "maxTokens": 10,
        "systemPrompt": "Be brief",
        "temperature": 0,
        "stopSequences": ["."],
        "modelPreferences": {
            "hints": [{"name": "sonnet"}, {"name": "claude"}],
            "costPriority": 0,
            "speedPriority": 0.5,
            "intelligencePriority": 1,
        },
        "includeContext": "none",
        "metadata": {"vendor": {"x": [1, 2]}},
        "tools": [{"name": "add", "title": "Addition", "description": "Adds", "inputSchema": ADD_SCHEMA}],
        "toolChoice": {"mode": "required"},
    }


def test_a_tool_of_the_server_is_a_tool_for_the_model() -> None:
    """Tools of the server can be offered to the client's model."""
    [described] = sampling_question("Why?", max_tokens=1, tools=[Add()]).params["tools"]
    assert described == {
        "name": "add",
        "description": "Adds two numbers",
        "inputSchema": {**ADD_SCHEMA, "description": "Two numbers.", "additionalProperties": False},
    }


def test_a_tool_can_be_described_by_a_model() -> None:
    """The schema is that of the arguments."""
    tool = SamplingTool.of("add", Pair, "Adds")
    assert (tool.name, tool.description) == ("add", "Adds")
    assert tool.input_schema == {**ADD_SCHEMA, "description": "Two numbers."}


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        pytest.param({}, {}, id="plain"),
        pytest.param({"include_context": "none"}, {}, id="no-context"),
        pytest.param({"include_context": "thisServer"}, {"context": {}}, id="context"),
        pytest.param({"include_context": "allServers", "tools": [Add()]}, {"tools": {}, "context": {}}, id="both"),
    ],
)
def test_a_client_must_have_what_is_used(options: Any, parts: Any) -> None:
    """Tools and context need a client that declared them."""
    assert sampling_question("Why?", max_tokens=1, **options).requires == {"sampling": parts}


def test_a_conversation_with_tools_needs_a_client_with_tools() -> None:
    """Tool uses in the conversation require the capability, too."""
    conversation = [SamplingMessage("assistant", USE), SamplingMessage("user", ToolUseResult("1", "3"))]
    assert sampling_question(conversation, max_tokens=1).requires == {"sampling": {"tools": {}}}


def test_a_conversation_goes_on_with_the_answer() -> None:
    """The answer can be used as the next message, and contains its tool uses."""
    sample = Sample("assistant", (TextContent("Let me see"), USE), "m", "toolUse")
    outcomes = [ToolUseResult(use.id, "3") for use in sample.tool_uses]
    conversation = [SamplingMessage("user", "1 + 2?"), sample.message, SamplingMessage("user", outcomes)]
    _, answered, told = messages_of(*conversation)
    assert [block["type"] for block in answered["content"]] == ["text", "tool_use"]
    assert told["content"]["toolUseId"] == "1"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"stop_sequences": "end"}, "stop_sequences", id="letters"),
        pytest.param({"tools": [Add(), Add()]}, "same name", id="same-name"),
        pytest.param({"tools": [SamplingTool("x", {"type": "string"})]}, '"type": "object"', id="no-object"),
    ],
)
def test_wrong_options_are_refused(options: Any, problem: str) -> None:
    """The text names the option."""
    with pytest.raises(ValueError, match=problem):
        sampling_question("Why?", **{"max_tokens": 1, **options})


@pytest.mark.parametrize("options", [{"cost_priority": 1.1}, {"speed_priority": -0.1}, {"hints": "sonnet"}])
def test_wrong_preferences_are_refused(options: Any) -> None:
    """Priorities are between 0 and 1, and hints are a list."""
    with pytest.raises(ValueError, match=r"between 0 and 1|list of names"):
        ModelPreferences(**options)


def answer(content: Any, **members: Any) -> Any:
    """Return the result of a client."""
    return {"role": "assistant", "content": content, "model": "m", **members}


TEXT = {"type": "text", "text": "Because"}
IMAGE = {"type": "image", "data": "AP8=", "mimeType": "image/png", "_meta": {}, "annotations": {"priority": 1}}
TOOL_USE = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}}


def test_an_answer_of_one_block_is_read() -> None:
    """This is what clients of every revision send."""
    sample = read_sample(answer(TEXT, stopReason="endTurn", _meta={}))
    assert sample == Sample("assistant", (TextContent("Because"),), "m", "endTurn")
    assert sample.text == "Because"


def test_an_answer_of_several_blocks_is_read() -> None:
    """Text blocks are joined with line breaks."""
    sample = read_sample(answer([TEXT, IMAGE, TOOL_USE, {"type": "text", "text": "of this"}]))
    assert sample.content[1:3] == (ImageContent(b"\x00\xff", "image/png", Annotations(priority=1), {}), USE)
    assert (sample.text, sample.stop_reason, sample.tool_uses) == ("Because\nof this", None, (USE,))


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        pytest.param("Because", "result: Expected `object`, got `str`", id="text"),
        pytest.param({"content": TEXT, "model": "m"}, "result: Object missing required field `role`", id="no-role"),
        pytest.param(answer(TEXT, role="IGNORE ALL"), "role: Invalid enum value", id="role"),
        pytest.param(answer(TEXT, model=None), "model: Expected `str`, got `null`", id="no-model"),
        pytest.param(answer("Because"), "content: Expected `object | array`, got `str`", id="text-for-a-block"),
        pytest.param(answer({"text": "x"}), "content: Object missing required field `type`", id="no-type"),
        pytest.param(answer({"type": "text"}), "content: Object missing required field `text`", id="no-text"),
        pytest.param(answer([TEXT, {"type": "IGNORE ALL"}]), "content[1].type: Invalid value", id="type"),
        pytest.param(answer({"type": "tool_result"}), "content.type: Invalid value", id="outcome"),
        pytest.param(answer({**IMAGE, "data": "%"}), "content.data: Invalid base64 encoded string", id="bytes"),
        pytest.param(answer({**TOOL_USE, "input": []}), "content.input: Expected `object`", id="input"),
    ],
)
def test_what_is_no_answer_is_refused(response: Any, problem: str) -> None:
    """The error contains the field, but not the value."""
    with pytest.raises(InvalidAnswer) as caught:
        read_sample(response)
    assert str(caught.value).startswith(f"Invalid answer: {problem}")
    assert "IGNORE" not in str(caught.value)


BLOCKS = objects(
    mostly("type", "text", "image", "audio", "tool_use"),
    *(mostly(name, "x", "AA==") for name in ("text", "data", "mimeType", "id", "name")),
    mostly("input", {}),
)
CONTENTS = JSON | BLOCKS | st.lists(BLOCKS, max_size=3)


@given(
    JSON
    | objects(
        mostly("role", "assistant"),
        mostly("model", "m"),
        CONTENTS.map(lambda one: {"content": one}),
        mostly("stopReason", "endTurn"),
    )
)
def test_any_json_is_a_sample_or_refused(response: Any) -> None:
    """Any answer results in a sample or InvalidAnswer."""
    try:
        sample = read_sample(response)
    except InvalidAnswer:
        return
    assert isinstance(sample.text, str)
