"""Questions and tasks in the in-process client."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ResourceNotFound, tool
from axolotl_core.content import TextContent
from axolotl_core.questions.question import Root
from axolotl_core.questions.sampling import Sample
from axolotl_core.task_engine import TASKS_EXTENSION
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from axolotl_server.client.replies import (
    ACCEPT,
    CANCEL,
    DECLINE,
    EVERYTHING,
    Answer,
    Question,
    TaskCancelled,
    UnansweredQuestion,
)
from axolotl_server.extension import Extension
from tests.support.scenarios.client_container import (
    Container,
    Size,
    Sure,
)
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import Probe

FILE = Root("file:///home/ann", "home")


def answering(*answers: Answer) -> Callable[[Question], Answer]:
    """Return prepared answers in order."""
    prepared = iter(answers)
    return lambda question: next(prepared)


async def test_rounds() -> None:
    """Questions are answered round by round with their keys, until the call ends."""
    asked: list[Question] = []

    def answer(question: Question) -> BaseModel:
        asked.append(question)
        return Sure(sure=True) if question.key == "sure" else Size(size="large")

    async with connect(Container(), answer=answer) as client:
        assert (await client.call("order")).text == "large: True"
    assert [(one.key, one.method, one.message) for one in asked] == [
        ("ask-1", "elicitation/create", "Which size?"),
        ("sure", "elicitation/create", "Really large?"),
    ]
    assert asked[0].params["requestedSchema"]["required"] == ["size"]


async def test_prompts_and_resources_ask() -> None:
    """Prompts and resources can ask too."""
    async with connect(Container(), answer=lambda question: Size(size="small")) as client:
        assert (await client.get_prompt("demanding")).text == "small"
        assert (await client.read_resource("sizes://mine")).text == "small"


@pytest.mark.parametrize(
    ("given", "action"),
    [
        pytest.param(Size(size="small"), "accept", id="model"),
        pytest.param({"size": "small"}, "accept", id="content"),
        pytest.param({"action": "accept", "content": {"size": "small"}}, "accept", id="whole-result"),
        pytest.param(DECLINE, "decline", id="decline"),
        pytest.param(CANCEL, "cancel", id="cancel"),
    ],
)
async def test_answers_to_a_form(given: Answer, action: str) -> None:
    """A form is answered with a model or a mapping, declined, or canceled."""
    async with connect(Container(), answer=answering(given)) as client:
        assert (await client.call("polite")).text == action


async def test_answer_to_a_page() -> None:
    """A request to open a page is answered by accepting it."""
    async with connect(Container(), answer=answering(ACCEPT)) as client:
        assert (await client.call("sign_in")).text == "signed in"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param("Paris", "Paris (in-process, None)", id="text"),
        pytest.param(
            Sample("assistant", (TextContent("Paris"),), "large", "endTurn"), "Paris (large, endTurn)", id="sample"
        ),
        pytest.param(
            {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"},
            "Paris (m, None)",
            id="whole-result",
        ),
    ],
)
async def test_answers_of_a_model(given: Answer, text: str) -> None:
    """A sampling request is answered with a text, a sample or a complete result."""
    async with connect(Container(), answer=answering(given)) as client:
        assert (await client.call("sample")).text == text


@pytest.mark.parametrize("roots", [[FILE], {"roots": [{"uri": "file:///home/ann"}]}])
async def test_several_questions_at_once(roots: Answer) -> None:
    """Questions of one round are answered together, also later."""

    async def answer(question: Question) -> Answer:
        await asyncio.sleep(0)
        match question.method:
            case "elicitation/create":
                return Size(size="small")
            case "sampling/createMessage":
                return "hello"
        return roots

    async with connect(Container(), answer=answer) as client:
        assert (await client.call("everything")).text == "small hello file:///home/ann"


async def test_no_answer() -> None:
    """An answer of the wrong type is an error of the test, raised in the test."""
    wrong: Any = answering(None)  # type: ignore[arg-type]
    async with connect(Container(), answer=wrong) as client:
        with pytest.raises(TypeError, match=r"NoneType is not an answer to 'ask-1' \(elicitation/create\)"):
            await client.call("order")


async def test_wrong_answers_end() -> None:
    """The number of rounds is limited."""
    asked: list[Question] = []

    def answer(question: Question) -> Answer:
        asked.append(question)
        return {"size": "huge"}

    async with connect(Container(), answer=answer) as client:
        with pytest.raises(UnansweredQuestion, match="still asks") as caught:
            await client.call("order")
    assert list(caught.value.keys) == ["ask-1"]
    assert len(asked) == 50
    message = str(caught.value)
    assert 'The question ask-1 is "Which size?". It expects content of the form {' in message
    assert '"required":["size"]' in message
    assert message.endswith('The last answer was {"action":"accept","content":{"size":"huge"}}')


async def test_nobody_to_ask() -> None:
    """Without answers, the client declares that it cannot be asked."""
    async with connect(Container()) as client:
        assert not any((await client.call("abilities")).structured.values())
        with pytest.raises(RemoteError, match="elicitation") as caught:
            await client.call("order")
    assert caught.value.code == -32021


async def test_capabilities() -> None:
    """The declared capabilities default to everything and can be set."""
    async with ServerHost(Container()) as host:
        able = InProcessClient(host.handler, answer=answering())
        assert all((await able.call("abilities")).structured.values())
        partly = InProcessClient(host.handler, answer=answering(), capabilities={"sampling": {}})
        assert (await partly.call("abilities")).structured == {
            "ask": False,
            "ask_url": False,
            "sample": True,
            "roots": False,
        }


async def test_extensions_of_the_client() -> None:
    """Capabilities can include extensions."""
    container = Container()
    container.extensions = providers.List(providers.Singleton(Extension, "com.example/receipts"))
    capabilities = {"extensions": {"com.example/receipts": {"paper": False}}}
    async with connect(container, capabilities=capabilities) as client:
        answer = await client.call("settings_of", {"identifier": "com.example/receipts"})
    assert answer.text == "{'paper': False}"


async def test_rounds_by_hand() -> None:
    """A client without prepared answers can handle the rounds itself."""
    async with connect(Container(), capabilities={"elicitation": {"form": {}}}) as client:
        with pytest.raises(UnansweredQuestion, match="pass one to connect\\(\\)\\. Unanswered: ask-1"):
            await client.call("polite")
        params = {"name": "polite", "arguments": {}}
        asked = await client.request("tools/call", params)
        assert list(asked["inputRequests"]) == ["ask-1"]
        answered = {**params, "inputResponses": {"ask-1": DECLINE}, "requestState": asked["requestState"]}
        assert (await client.request("tools/call", answered))["content"][0]["text"] == "decline"


@tool(task_support="required")
async def long_order(context: Context) -> str:
    """Ask, and take a while."""
    size = await context.ask(Size, "Which size?")
    context.report_progress(1)
    return size.size


@tool(task_support="required")
async def hopeless() -> str:
    """Fail with a protocol error."""
    raise ResourceNotFound("nowhere://at/all")


class LongProbe(Probe):
    """Waits as a task."""

    name = "long_probe"
    task_support = "required"


class Lasting(containers.DeclarativeContainer):
    """Tools that run as tasks."""

    probe = providers.Singleton(LongProbe)
    tools = providers.List(providers.Object(long_order), providers.Object(hopeless), probe)


TASKS = {**EVERYTHING, "extensions": {TASKS_EXTENSION: {}}}


async def test_task() -> None:
    """A call that becomes a task is followed to its result, and its questions are answered."""
    async with connect(Lasting(), answer=answering(Size(size="large")), capabilities=TASKS) as client:
        assert (await client.call("long_order")).text == "large"


async def test_task_by_hand() -> None:
    """A plain request returns the task, which can be followed later."""
    async with connect(Lasting(), answer=answering(Size(size="large")), capabilities=TASKS) as client:
        task = await client.request("tools/call", {"name": "long_order"})
        assert task["status"] == "working"
        assert (await client.follow(task["taskId"]))["content"][0]["text"] == "large"
        assert (await client.follow(task["taskId"]))["content"][0]["text"] == "large"


async def test_task_that_fails() -> None:
    """The error of a task is raised by the call."""
    async with connect(Lasting(), capabilities=TASKS) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call("hopeless")
    assert (caught.value.code, caught.value.data) == (-32602, {"uri": "nowhere://at/all"})


async def test_task_without_answer() -> None:
    """A task whose question is not answered raises an error."""
    async with connect(Lasting(), capabilities=TASKS) as client:
        with pytest.raises(UnansweredQuestion, match="ask-1"):
            await client.call("long_order")


async def test_cancelled_call_of_a_task() -> None:
    """Canceling the asyncio task cancels the task on the server."""
    container = Lasting()
    async with connect(container, capabilities=TASKS) as client:
        waiting = asyncio.ensure_future(client.call("long_probe"))
        await container.probe().started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(PATIENCE_SECONDS):
            await container.probe().cancelled.wait()


async def test_task_that_is_cancelled_by_others() -> None:
    """A task that another client cancels has no result."""
    container = Lasting()
    async with connect(container, capabilities=TASKS) as client:
        task = await client.request("tools/call", {"name": "long_probe"})
        following = asyncio.ensure_future(client.follow(task["taskId"]))
        await container.probe().started.wait()
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        with pytest.raises(TaskCancelled, match="cancelled"):
            await following
