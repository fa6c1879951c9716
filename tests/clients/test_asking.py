"""Questions of tools that clients answer."""

import asyncio
from collections.abc import Sequence
from typing import Any

import fastmcp
import mcp
import pytest
from mcp import MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    Root,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

from tests.support.clients.asking_tools import PAYMENT_URL
from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import LISTENING_WAYS, by_every_way, by_handshake_ways
from tests.support.clients.connections import Places
from tests.support.clients.kept_connections import Lines
from tests.support.clients.simulated_user import ROOTS, Written, answering, soon, words, writing, written

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


@by_every_way
async def test_a_form_is_filled_in(peer: IPeer) -> None:
    """The client receives the form as a schema, and the tool gets the answer as its model, including defaults."""
    peer.person.fill_in = answering("accept", name="Ada", nights=2, breakfast=True)
    assert await peer.text_of("book") == "Ada, 2 nights, single, breakfast: True"
    (form,) = peer.person.questions
    assert isinstance(form, ElicitRequestFormParams)
    assert form.message == "Your booking?"
    fields: Any = form.requested_schema["properties"]
    assert fields["name"]["description"] == "Who comes."
    assert (fields["nights"]["minimum"], fields["nights"]["maximum"]) == (1, 30)
    assert (fields["room"]["enum"], fields["room"]["default"]) == (["single", "double"], "single")
    assert form.requested_schema["required"] == ["name", "nights"]


@by_every_way
async def test_a_form_offers_choices(peer: IPeer) -> None:
    """Dates, numbers, single and multiple choices, with and without titles, are sent and returned with their types."""
    answer = {"day": "2026-02-01", "rating": 4.5, "size": "m", "colours": ["red", "blue"], "toppings": ["figs"]}
    peer.person.fill_in = answering("accept", **answer)
    assert (await peer.call("survey")).structured_content == {**answer, "remark": None}
    (form,) = peer.person.questions
    assert isinstance(form, ElicitRequestFormParams)
    fields: Any = form.requested_schema["properties"]
    assert fields["day"]["format"] == "date"
    assert fields["size"]["oneOf"] == [{"const": "s", "title": "Small"}, {"const": "m", "title": "Medium"}]
    assert fields["colours"]["items"] == {"type": "string", "enum": ["red", "green", "blue"]}
    assert [choice["title"] for choice in fields["toppings"]["items"]["anyOf"]] == ["Hazelnuts", "Dried figs"]


@by_every_way
async def test_a_form_stays_empty(peer: IPeer) -> None:
    """A tool learns whether the user declined or canceled; a tool that requires an answer fails with a reason."""
    for action, reason in {
        "decline": "The user declined to answer",
        "cancel": "The user cancelled the question",
    }.items():
        peer.person.fill_in = answering(action)
        assert await peer.text_of("book") == f"no booking: {action}"
        failed = await peer.call("insist")
        assert failed.is_error
        assert failed.content == [TextContent(text=reason)]


@by_every_way
async def test_a_page_is_opened(peer: IPeer) -> None:
    """A user who is asked to open a page accepts, declines or cancels."""
    for action, outcome in {
        "accept": "on the way",
        "decline": "not paid: decline",
        "cancel": "not paid: cancel",
    }.items():
        peer.person.fill_in = answering(action)
        assert await peer.text_of("pay") == outcome
        question = peer.person.questions.pop()
        assert isinstance(question, ElicitRequestURLParams)
        assert (question.url, question.message) == (PAYMENT_URL, "Pay here")
        assert (question.elicitation_id is None) is peer.way.stateless


@by_every_way
async def test_an_answer_does_not_match_the_form(peer: IPeer) -> None:
    """An answer that does not match its form never reaches the tool: the call fails, or the question is asked again."""
    answers = iter([answering("accept", name="Ada", nights=99), answering("accept", name="Ada", nights=9)])

    async def fill_in(params: ElicitRequestParams) -> ElicitResult:
        return await next(answers)(params)

    peer.person.fill_in = fill_in
    result = await peer.call("book")
    assert result.is_error is not peer.way.stateless
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert (
        "Ada, 9 nights"
        if peer.way.stateless
        else "The client's answer cannot be used. Invalid answer: content.nights: "
    ) in block.text


@by_handshake_ways
async def test_a_client_refuses(peer: IPeer) -> None:
    """If the client rejects a question, the tool fails and the model gets the client's message."""

    async def refuse(params: CreateMessageRequestParams) -> Written:
        raise MCPError(-1, "User rejected sampling")

    peer.person.write = refuse
    refused = await peer.call("summarise", {"text": "long"})
    assert refused.is_error
    assert refused.content == [TextContent(text="The client refused to answer: User rejected sampling")]


@by_every_way
async def test_the_clients_model_writes(peer: IPeer) -> None:
    """A tool uses the client's model, which receives all parameters of the sampling request."""
    peer.person.write = writing("short")
    assert await peer.text_of("summarise", {"text": "long"}) == "parrot wrote: short (endTurn)"
    (asked,) = peer.person.samples
    assert [message.content for message in asked.messages] == [TextContent(text="long")]
    assert (asked.max_tokens, asked.system_prompt, asked.temperature) == (50, "Be brief", 0.5)


@by_every_way
async def test_the_clients_model_uses_a_tool(peer: IPeer) -> None:
    """When the model requests a tool, it receives the result of that tool and uses it in its answer."""

    async def write(params: CreateMessageRequestParams) -> Written:
        assert params.tools is not None
        assert [tool.name for tool in params.tools] == ["forecast"]
        last = params.messages[-1].content
        outcome = last[0] if isinstance(last, list) else last
        if not isinstance(outcome, ToolResultContent):
            use = ToolUseContent(id="use-1", name="forecast", input={"city": "Oslo"})
            return CreateMessageResultWithTools(role="assistant", content=[use], model="parrot", stop_reason="toolUse")
        (told,) = outcome.content
        assert isinstance(told, TextContent)
        return written(f"{outcome.tool_use_id} says {told.text}")

    peer.person.write = write
    assert await peer.text_of("research") == "use-1 says snow in Oslo"
    assert len(peer.person.samples) == 2


@by_every_way
async def test_roots(peer: IPeer) -> None:
    """A tool receives the roots of its client."""
    result = await peer.call("workplaces")
    told = ["work: file:///home/ada/work", "scratch: file:///tmp"]
    assert result.structured_content == (told if peer.way.stateless else {"result": told})


@by_every_way
async def test_several_questions_are_open_at_once(peer: IPeer) -> None:
    """Questions that a tool asks together reach the client together."""
    together = asyncio.Barrier(3)

    async def fill_in(params: ElicitRequestParams) -> ElicitResult:
        await together.wait()
        return await words("yes")(params)

    async def write(params: CreateMessageRequestParams) -> Written:
        await together.wait()
        return written("certainly")

    async def show_roots() -> Sequence[Root]:
        await together.wait()
        return ROOTS

    peer.person.fill_in, peer.person.write, peer.person.show_roots = fill_in, write, show_roots
    assert await peer.text_of("everything") == "yes, certainly, 2 roots"


@by_every_way
async def test_a_question_follows_from_an_answer(peer: IPeer) -> None:
    """A tool can ask a second question based on the first answer, and no question is asked twice."""
    peer.person.fill_in = words("one", "two")
    assert await peer.text_of("step_by_step") == "one two"
    assert [question.message for question in peer.person.questions] == ["The first word?", "What comes after one?"]


@by_every_way
async def test_a_user_may_take_longer_than_the_tool(peer: IPeer) -> None:
    """The timeout of a tool is paused while its user answers."""

    async def think(params: ElicitRequestParams) -> ElicitResult:
        late = await peer.call("overrun")
        assert late.is_error, "as long as this takes, the time of the tool that asks is over"
        assert late.content == [TextContent(text="Tool overrun did not finish within 0.4 seconds")]
        return await words("done")(params)

    peer.person.fill_in = think
    assert await peer.text_of("hurry") == "done"


@by_every_way
async def test_a_question_is_withdrawn(peer: IPeer) -> None:
    """A question is withdrawn when its call is canceled."""
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def think(params: ElicitRequestParams) -> ElicitResult:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError("nobody wakes them")

    peer.person.fill_in = think
    calling = asyncio.create_task(peer.call("insist"))
    await soon(asked.wait())
    calling.cancel()
    await soon(withdrawn.wait())
    with pytest.raises(asyncio.CancelledError):
        await calling


@by_every_way
async def test_tools_know_what_they_may_ask(peer: IPeer) -> None:
    """A tool sees that a client supports every kind of question."""
    result = await peer.call("abilities")
    assert result.structured_content in ([True] * 4, {"result": [True] * 4})


async def test_another_connection_brings_the_answer(lines: Lines) -> None:
    """A question of a stateless call can be answered on another connection, but not for another call."""
    first, second = [(await lines.to(way)).session for way in LISTENING_WAYS if way.transport == "http"]
    asked = await first.call_tool("step_by_step", allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    assert asked.input_requests is not None
    (key,) = asked.input_requests
    given: dict[str, Any] = {
        "input_responses": {key: ElicitResult(action="accept", content={"word": "once"})},
        "request_state": asked.request_state,
        "allow_input_required": True,
    }
    again = await second.call_tool("step_by_step", **given)
    assert isinstance(again, InputRequiredResult)
    assert again.input_requests is not None
    (question,) = again.input_requests.values()
    assert isinstance(question, ElicitRequest)
    assert question.params.message == "What comes after once?"
    with pytest.raises(MCPError) as caught:
        await second.call_tool("insist", **given)
    assert caught.value.error.code == -32602


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_cannot_be_asked(mode: Any, places: Places) -> None:
    """A tool sees that a client cannot be asked; if it asks anyway, it fails in the way of its era."""
    async with mcp.Client(places.url, mode=mode) as client:
        able = (await client.call_tool("abilities")).structured_content
        assert able in ([False] * 4, {"result": [False] * 4})
        if mode == "legacy":
            failed = await client.call_tool("insist")
            assert failed.is_error
            assert failed.content == [TextContent(text="This needs a client with the capability elicitation")]
        else:
            with pytest.raises(MCPError, match="needs a client with the capability elicitation") as caught:
                await client.call_tool("insist")
            assert caught.value.error.code == -32021
            assert caught.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_fastmcp_makes_a_type_of_a_form(mode: str, places: Places) -> None:
    """FastMCP's client turns the schema of a form into a class, and the server accepts its instances as answers."""

    async def fill_in(message: str, form: Any, params: Any, context: Any) -> Any:
        return form(name="Grace", nights=3, room="double")

    async with fastmcp.Client(places.url, mode=mode, elicitation_handler=fill_in) as client:
        result = await client.call_tool("book")
        assert result.content == [TextContent(text="Grace, 3 nights, double, breakfast: False")]
