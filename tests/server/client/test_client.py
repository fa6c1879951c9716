"""The in-process client for tests of servers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import (
    BlobResource,
    CacheHint,
    CancelReason,
    Completion,
    Declined,
    Extension,
    InvalidArguments,
    PromptMessage,
    PromptRegistry,
    ResourceNotFound,
    ResourceRegistry,
    Root,
    TextContent,
    TextResource,
    ToolContext,
    prompt,
    resource,
    tool,
)
from axolotl_core.questions.sampling import Sample
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from axolotl_server.client.outcomes import (
    ACCEPT,
    CANCEL,
    DECLINE,
    EVERYTHING,
    Answer,
    Change,
    Inquiry,
    TaskCancelled,
    UnansweredQuestion,
)
from axolotl_server.methods.lifecycle import TASKS_EXTENSION
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Probe

TOOLS_CHANGED = Change("notifications/tools/list_changed")
FILE = Root("file:///home/ann", "home")


class Size(BaseModel):
    size: Literal["small", "large"]
    note: str | None = None


class Sure(BaseModel):
    sure: bool


@tool
async def order(context: ToolContext) -> str:
    """Ask for a size, and then for a confirmation."""
    size = await context.ask(Size, "Which size?")
    sure = await context.ask(Sure, f"Really {size.size}?", key="sure")
    return f"{size.size}: {sure.sure}"


@tool
async def polite(context: ToolContext) -> str:
    """Ask, and handle a declined question."""
    try:
        await context.ask(Size, "Which size?")
    except Declined as refusal:
        return refusal.action
    return "accept"


@tool
async def sign_in(context: ToolContext) -> str:
    """Have a page opened."""
    await context.ask_url("https://example.com/sign-in", "Sign in")
    return "signed in"


@tool
async def sample(context: ToolContext) -> str:
    """Ask a model."""
    answered = await context.sample("Which capital?", max_tokens=10)
    return f"{answered.text} ({answered.model}, {answered.stop_reason})"


@tool
async def everything(context: ToolContext) -> str:
    """Ask three things at once."""
    size, said, roots = await asyncio.gather(
        context.ask(Size, "Which size?"), context.sample("Say something", max_tokens=10), context.roots()
    )
    return f"{size.size} {said.text} {roots[0].uri}"


@tool
async def abilities(context: ToolContext) -> dict[str, bool]:
    """Tell what the client can be asked."""
    return {
        "ask": context.can_ask,
        "ask_url": context.can_ask_url,
        "sample": context.can_sample,
        "roots": context.can_list_roots,
    }


@tool
async def settings_of(identifier: str, context: ToolContext) -> str:
    """Tell what the client says of an extension."""
    return repr(context.client_extension(identifier))


@tool
async def talk(context: ToolContext) -> str:
    """Log, and report progress."""
    context.log("debug", {"step": 1}, "talker")
    context.report_progress(1, 2, "half")
    context.log("error", "two")
    context.report_progress(2, 2)
    return "said"


@tool
async def trace(context: ToolContext) -> str:
    """Tell the trace of the call."""
    return "none" if context.trace is None else context.trace.traceparent


@prompt
async def greeting(name: str, tone: Literal["warm", "cold"] = "warm") -> list[str | PromptMessage]:
    """Greet someone.

    Args:
        name: Whom.
        tone: How.
    """
    return [f"Greet {name}, {tone}.", PromptMessage("assistant", TextContent("Gladly."))]


@greeting.completes("name")
def names(value: str, known: Mapping[str, str]) -> Completion:
    """Suggest names, and what is known already."""
    return Completion([f"{value}nn", *known.values()], total=7, has_more=True)


@prompt
async def demanding(context: ToolContext) -> str:
    """Ask for a size."""
    return (await context.ask(Size, "Which size?")).size


@resource("config://app", cache=CacheHint(1.5, "public"))
async def config() -> dict[str, int]:
    """Hold the configuration."""
    return {"port": 8000}


@resource("pages://{number}")
async def page(number: int) -> list[TextResource | BlobResource]:
    """Hold a page and its picture."""
    uri = f"pages://{number}"
    return [TextResource(uri, f"page {number}"), BlobResource(f"{uri}/picture", b"\x00\xff", "image/png")]


@resource("sizes://mine")
async def my_size(context: ToolContext) -> str:
    """Ask for a size."""
    return (await context.ask(Size, "Which size?")).size


class Container(containers.DeclarativeContainer):
    """Every kind of feature."""

    prompt_registry = providers.Singleton(PromptRegistry)
    resource_registry = providers.Singleton(ResourceRegistry)
    probe = providers.Singleton(Probe)
    plain = (order, polite, sign_in, sample, everything, abilities, settings_of, talk, trace)
    tools = providers.List(probe, *map(providers.Object, plain))
    prompts = providers.List(providers.Object(greeting), providers.Object(demanding))
    resources = providers.List(providers.Object(config), providers.Object(page), providers.Object(my_size))


def answering(*answers: Answer) -> Callable[[Inquiry], Answer]:
    """Return prepared answers in order."""
    prepared = iter(answers)
    return lambda inquiry: next(prepared)


async def test_lists_are_whole() -> None:
    """All pages of a list are read."""
    async with connect(Container(), settings={"protocol": {"page_size": 1}}) as client:
        assert len(await client.list_tools()) == 10
        assert [one["name"] for one in await client.list_prompts()] == ["greeting", "demanding"]
        assert [one["uri"] for one in await client.list_resources()] == ["config://app", "sizes://mine"]
        assert [one["uriTemplate"] for one in await client.list_resource_templates()] == ["pages://{number}"]


async def test_prompt() -> None:
    """A prompt returns its messages."""
    async with connect(Container()) as client:
        outcome = await client.get_prompt("greeting", {"name": "Ann"})
    assert [message["role"] for message in outcome.messages] == ["user", "assistant"]
    assert outcome.text == "Greet Ann, warm.\nGladly."
    assert outcome.description is None
    assert outcome.meta


async def test_prompt_refused() -> None:
    """Invalid arguments raise an error with the server's message."""
    async with connect(Container()) as client:
        with pytest.raises(RemoteError, match="tone") as caught:
            await client.get_prompt("greeting", {"name": "Ann", "tone": "hot"})
    assert caught.value.code == -32602


async def test_resource() -> None:
    """A resource returns its text and cache hints."""
    async with connect(Container()) as client:
        outcome = await client.read_resource("config://app")
    assert outcome.text == '{"port":8000}'
    assert outcome.blobs == []
    assert outcome.cache == CacheHint(1.5, "public")


async def test_resource_of_a_template() -> None:
    """Several contents are returned, with bytes decoded."""
    async with connect(Container()) as client:
        outcome = await client.read_resource("pages://7")
    assert (outcome.text, outcome.blobs) == ("page 7", [b"\x00\xff"])
    assert [content["uri"] for content in outcome.contents] == ["pages://7", "pages://7/picture"]


async def test_missing_resource() -> None:
    """An unknown URI is an error that names it."""
    async with connect(Container()) as client:
        with pytest.raises(RemoteError) as caught:
            await client.read_resource("nowhere://at/all")
    assert caught.value.data == {"uri": "nowhere://at/all"}


async def test_completion() -> None:
    """Arguments of prompts and variables of templates are completed."""
    async with connect(Container()) as client:
        known = {"tone": "cold"}
        assert await client.complete("name", "A", prompt="greeting", known=known) == Completion(
            ["Ann", "cold"], 7, True
        )
        assert (await client.complete("tone", prompt="greeting")).values == ["warm", "cold"]
        assert (await client.complete("number", "1", template="pages://{number}")).values == []


@pytest.mark.parametrize("named", [{}, {"prompt": "greeting", "template": "pages://{number}"}])
async def test_completion_of_nothing(named: dict[str, Any]) -> None:
    """Completion needs a prompt or a template."""
    async with connect(Container()) as client:
        with pytest.raises(ValueError, match="Give either a prompt or a template"):
            await client.complete("name", **named)


async def test_progress_and_log() -> None:
    """Progress and log messages of all levels arrive before the result."""
    heard: list[Mapping[str, Any]] = []
    async with connect(Container()) as client:
        assert (await client.call("talk", on_progress=heard.append, on_log=heard.append)).text == "said"
    told = [{key: value for key, value in params.items() if key != "progressToken"} for params in heard]
    assert told == [
        {"level": "debug", "data": {"step": 1}, "logger": "talker"},
        {"progress": 1, "total": 2, "message": "half"},
        {"level": "error", "data": "two"},
        {"progress": 2, "total": 2},
    ]


async def test_nothing_is_told_unasked() -> None:
    """A client that requests only progress gets no log messages."""
    heard: list[Mapping[str, Any]] = []
    async with connect(Container()) as client:
        await client.call("talk", on_progress=heard.append)
    assert [params["progress"] for params in heard] == [1, 2]


async def test_messages_belong_to_their_call() -> None:
    """Concurrent calls receive only their own messages."""
    heard: list[list[Mapping[str, Any]]] = [[], [], []]
    async with connect(Container()) as client:
        await asyncio.gather(*(client.call("talk", on_log=one.append) for one in heard))
    assert [[params["data"] for params in one] for one in heard] == [[{"step": 1}, "two"]] * 3


async def test_own_meta() -> None:
    """A request can have its own `_meta`."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with connect(Container()) as client:
        params = {"name": "trace", "arguments": {}, "_meta": {"traceparent": parent}}
        result = await client.request("tools/call", params)
        assert (await client.call("trace")).text == "none"
    assert result["content"][0]["text"] == parent


async def test_failing_listener() -> None:
    """An exception of a callback is raised by the call, which is canceled."""

    def fail(params: Mapping[str, Any]) -> None:
        raise InvalidArguments("enough")

    container = Container()
    container.probe.override(providers.Singleton(Probe, progress=True))
    async with connect(container) as client:
        with pytest.raises(InvalidArguments, match="enough"):
            await client.call("probe", on_progress=fail)
        assert container.probe().cancelled.is_set()


async def test_concurrent_calls() -> None:
    """A waiting call does not block others."""
    container = Container()
    async with connect(container) as client:
        waiting = asyncio.ensure_future(client.call("probe"))
        await container.probe().started.wait()
        assert (await client.call("talk")).text == "said"
        assert not waiting.done()
        container.probe().release.set()
        assert (await waiting).text == "done"


async def test_cancellation() -> None:
    """Canceling the asyncio task cancels only its own call, like a client on the wire."""
    container = Container()
    async with connect(container) as client:
        waiting = asyncio.ensure_future(client.call("probe"))
        await container.probe().started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        probe = container.probe()
        assert probe.cancelled.is_set()
        assert probe.context is not None
        assert probe.context.cancel_reason is CancelReason.CLIENT
        assert (await client.call("talk")).text == "said"


async def test_timeout() -> None:
    """A call can be stopped with asyncio timeouts."""
    container = Container()
    async with connect(container) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await client.call("probe")


async def test_close_ends_calls() -> None:
    """Closing the client ends all calls."""
    container = Container()
    before = asyncio.all_tasks()
    async with ServerHost(container) as host:
        client = InProcessClient(host.handler)
        waiting = asyncio.ensure_future(client.call("probe"))
        await container.probe().started.wait()
        await client.close()
        with pytest.raises(ConnectionError, match="closed before the server answered"):
            await waiting
        with pytest.raises(ConnectionError, match="The client is closed"):
            await client.list_tools()
        assert container.probe().cancelled.is_set()
        assert not host.handler.inflight
        await until(lambda: asyncio.all_tasks() == before)


async def test_listening() -> None:
    """List changes are delivered until the block ends."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen() as changes:
            assert set(changes.accepted) == {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}
            host.registry.unregister("talk")
            assert await anext(changes) == TOOLS_CHANGED
            host.roles.prompt_registry.unregister("greeting")
            assert await anext(changes) == Change("notifications/prompts/list_changed")
            host.roles.resource_registry.unregister("config://app")
            assert await anext(changes) == Change("notifications/resources/list_changed")
        host.registry.unregister("order")
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
        await client.close()


async def test_listening_to_resources() -> None:
    """A subscription to resources delivers only their updates."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen("config://app", lists=()) as changes:
            host.registry.unregister("talk")
            host.roles.resource_registry.updated("sizes://mine")
            host.roles.resource_registry.updated("config://app")
            assert await anext(changes) == Change("notifications/resources/updated", "config://app")
        await client.close()


async def test_listening_and_calling() -> None:
    """A client can call during subscriptions, and have several of them."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen() as first, client.listen() as second:
            assert (await client.call("talk")).text == "said"
            host.registry.unregister("talk")
            assert [await anext(first), await anext(second)] == [TOOLS_CHANGED] * 2
        await client.close()


async def test_listening_ends_with_the_client() -> None:
    """Closing the client ends the iteration without an error."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        entered = asyncio.Event()

        async def collect() -> list[Change]:
            async with client.listen() as changes:
                entered.set()
                return [change async for change in changes]

        collecting = asyncio.ensure_future(collect())
        await entered.wait()
        await client.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await collecting == []


async def test_refused_listener() -> None:
    """If the server rejects a subscription, an error is raised."""
    async with connect(Container(), settings={"subscriptions": {"maximum": 1}}) as client, client.listen():
        with pytest.raises(RemoteError, match="Too many subscriptions"):
            async with client.listen():
                pass


async def test_rounds() -> None:
    """Questions are answered round by round with their keys, until the call ends."""
    asked: list[Inquiry] = []

    def answer(inquiry: Inquiry) -> BaseModel:
        asked.append(inquiry)
        return Sure(sure=True) if inquiry.key == "sure" else Size(size="large")

    async with connect(Container(), answer=answer) as client:
        assert (await client.call("order")).text == "large: True"
    assert [(one.key, one.method, one.message) for one in asked] == [
        ("ask-1", "elicitation/create", "Which size?"),
        ("sure", "elicitation/create", "Really large?"),
    ]
    assert asked[0].params["requestedSchema"]["required"] == ["size"]


async def test_prompts_and_resources_ask() -> None:
    """Prompts and resources can ask too."""
    async with connect(Container(), answer=lambda inquiry: Size(size="small")) as client:
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

    async def answer(inquiry: Inquiry) -> Answer:
        await asyncio.sleep(0)
        match inquiry.method:
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
    asked: list[Inquiry] = []

    def answer(inquiry: Inquiry) -> Answer:
        asked.append(inquiry)
        return {"size": "huge"}

    async with connect(Container(), answer=answer) as client:
        with pytest.raises(UnansweredQuestion, match="still asks") as caught:
            await client.call("order")
    assert list(caught.value.keys) == ["ask-1"]
    assert len(asked) == 50


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
async def long_order(context: ToolContext) -> str:
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
