"""Outputs of prompts: strings, blocks and messages."""

from typing import Any

import pytest

from axolotl_core import Context, IPrompt, NoArguments, PromptMessage
from axolotl_core.content import EmbeddedResource, ImageContent, TextContent, TextResource, ToolResult
from axolotl_core.prompts import PromptOutput, PromptResult, prompt_result
from tests.support.core.feature_calls import run, told_by

IMAGE = ImageContent(b"x", "image/png")
EMBEDDED = EmbeddedResource(TextResource("a://b", "text"))
ANSWER = PromptMessage("assistant", TextContent("Well"))


class Fixed(IPrompt[NoArguments]):
    """A prompt that returns a fixed output."""

    name = "fixed"

    def __init__(self, output: Any) -> None:
        self.output = output

    async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
        output: PromptOutput = self.output
        return output


@pytest.mark.parametrize(
    ("output", "messages"),
    [
        pytest.param("Hi", [("user", TextContent("Hi"))], id="text"),
        pytest.param("", [("user", TextContent(""))], id="empty-text"),
        pytest.param(IMAGE, [("user", IMAGE)], id="block"),
        pytest.param(ANSWER, [("assistant", TextContent("Well"))], id="message"),
        pytest.param(["a", "b"], [("user", TextContent("a")), ("user", TextContent("b"))], id="texts"),
        pytest.param(
            ("Ask", ANSWER, EMBEDDED),
            [("user", TextContent("Ask")), ("assistant", TextContent("Well")), ("user", EMBEDDED)],
            id="mixed",
        ),
        pytest.param([], [], id="none"),
    ],
)
async def test_outputs_become_messages(output: Any, messages: list[tuple[str, Any]]) -> None:
    """Strings and blocks become messages of the user; messages have their own role."""
    result = await run(Fixed(output))
    assert [(message.role, message.content) for message in result.messages] == messages
    assert (result.description, result.meta) == (None, None)


async def test_a_whole_result_is_kept() -> None:
    """Description and meta are those of the prompt; texts among the messages become messages."""
    result = await run(Fixed(PromptResult(["Ask", ANSWER], "About it", {"a": 1})))  # type: ignore[list-item]
    assert (result.description, result.meta) == ("About it", {"a": 1})
    assert told_by(result) == ["Ask", "Well"]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        pytest.param(None, "not NoneType", id="nothing"),
        pytest.param(5, "not int", id="number"),
        pytest.param(b"bytes", "not bytes", id="bytes"),
        pytest.param({"role": "user"}, "not dict", id="dict"),
        pytest.param(["a", None], "not NoneType", id="inside"),
        pytest.param([["a"]], "not list", id="nested"),
        pytest.param({"a", "b"}, "not set", id="set"),
        pytest.param(iter(["a"]), "not list_iterator", id="iterator"),
        pytest.param(ToolResult(), "not ToolResult", id="result-of-a-tool"),
        pytest.param(PromptResult([5]), "not int", id="in-a-result"),  # type: ignore[list-item]
        pytest.param(PromptMessage("user", b"Hi"), "contains a string or a content block, not bytes", id="content"),  # type: ignore[arg-type]
        pytest.param(
            PromptMessage("system", TextContent("Hi")),  # type: ignore[arg-type]
            "user or assistant, not 'system'",
            id="role",
        ),
    ],
)
def test_invalid_outputs_are_refused(output: Any, text: str) -> None:
    """Invalid outputs raise TypeError before anything reaches a client."""
    with pytest.raises(TypeError, match=text):
        prompt_result(output)


async def test_the_context_reaches_the_prompt() -> None:
    """A prompt knows its call."""

    class Asking(IPrompt[NoArguments]):
        name = "asking"

        async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
            return str(context.request_id)

    assert told_by(await Asking().execute(NoArguments(), Context(request_id="r5"))) == ["r5"]
