"""Questions of tasks, in both designs."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import BaseModel, Field, field_validator

from axolotl_core import Declined, ITool, NoArguments, ToolCancelled, ToolContext, tool
from axolotl_server import ServerHost
from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import RELATED, STATUS, DirectedPeer, Job, Peer, RequestingPeer
from tests.support.peers.task_results import Waiting, begin, is_lost, requests_of
from tests.support.peers.wire import message
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import container_of

ASKED = "elicitation/create"


class Amount(BaseModel):
    """A number."""

    amount: int = Field(ge=1, le=10)


class Fragile(BaseModel):
    """A form whose validator fails."""

    word: str

    @field_validator("word")
    @classmethod
    def look_up(cls, word: str) -> str:
        """Raise an unexpected error."""
        raise KeyError(word)


@tool(task_support="optional")
async def order(context: ToolContext) -> str:
    """Ask one question."""
    return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"


@tool(task_support="optional")
async def order_both(context: ToolContext) -> str:
    """Ask two questions at once."""
    first, second = await asyncio.gather(
        context.ask(Amount, "How many apples?", key="apples"), context.ask(Amount, "How many pears?", key="pears")
    )
    return f"{first.amount} and {second.amount}"


@tool(task_support="optional")
async def order_again(context: ToolContext) -> str:
    """Ask the same questions repeatedly, with and without keys."""
    amounts = [(await context.ask(Amount, "How many?", key="amount")).amount for _ in range(3)]
    amounts += [(await context.ask(Amount, "How many?")).amount for _ in range(2)]
    await context.roots()
    return f"{amounts}"


@tool(task_support="optional")
async def order_or_not(context: ToolContext) -> str:
    """Handle a declined question."""
    try:
        return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"
    except Declined as declined:
        return f"{declined.action}: {declined.message}"


@tool(task_support="optional")
async def break_form(context: ToolContext) -> str:
    """Ask with a form that fails."""
    return (await context.ask(Fragile, "Which word?", key="word")).word


@tool(task_support="optional", timeout_seconds=0.05)
async def hurry(context: ToolContext) -> str:
    """Ask with a short timeout."""
    return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"


@tool(timeout_seconds=0.05)
async def oversleep() -> None:
    """Exceed that timeout."""
    await asyncio.Event().wait()


class AskingFromThread(ITool[NoArguments, str]):
    """Asks from a thread."""

    name = "ask_from_thread"
    execution = "thread"
    task_support = "optional"

    def __init__(self) -> None:
        self.over = threading.Event()

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        assert threading.current_thread() is not threading.main_thread()
        try:
            return await self._order(context)
        finally:
            self.over.set()

    async def _order(self, context: ToolContext) -> str:
        return f"ordered {(await context.ask(Amount, 'How many?', key='amount')).amount}"


TOOLS = (
    order,
    order_both,
    order_again,
    order_or_not,
    break_form,
    hurry,
    oversleep,
    AskingFromThread(),
)


def accepted(amount: Any = 3) -> dict[str, Any]:
    return {"action": "accept", "content": {"amount": amount}}


@pytest_asyncio.fixture
async def host() -> AsyncIterator[ServerHost]:
    """A server with tools that ask."""
    async with ServerHost(container_of(*TOOLS)) as host:
        yield host


@pytest_asyncio.fixture
async def requesting(host: ServerHost) -> RequestingPeer:
    """A client that requests tasks."""
    return await RequestingPeer.begun(host, capabilities={"elicitation": {}, "roots": {}})


@pytest_asyncio.fixture
async def directed(host: ServerHost) -> DirectedPeer:
    """A client of tasks that the server creates."""
    peer = DirectedPeer(host)
    peer.capabilities = {**peer.capabilities, "roots": {}}
    return peer


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def text_of(reply: Mapping[str, Any]) -> str:
    return str(reply["result"]["content"][0]["text"])


# Tasks that clients request


@pytest.mark.parametrize("name", ["order", "ask_from_thread"])
async def test_a_requested_task_asks(requesting: RequestingPeer, name: str) -> None:
    """A task sends a request that names it, waits for input, and continues with the answer."""
    task = await requesting.call(name)
    question = await requesting.hear(ASKED)
    assert question["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
    assert question["params"]["message"] == "How many?"
    assert await requesting.status(task["taskId"]) == "input_required"
    requesting.answer(question, accepted())
    assert text_of(await requesting.fetch(task["taskId"])) == "ordered 3"
    states = [(await requesting.hear(STATUS))["params"]["status"] for _ in range(3)]
    assert states == ["input_required", "working", "completed"]


async def test_several_questions_at_once(requesting: RequestingPeer) -> None:
    """A task waits for input until all of its questions are answered."""
    task = await requesting.call("order_both")
    first, second = await requesting.hear(ASKED), await requesting.hear(ASKED)
    assert first["id"] != second["id"]
    requesting.answer(second, accepted(2))
    await requesting.settle()
    assert await requesting.status(task["taskId"]) == "input_required"
    requesting.answer(first, accepted(1))
    assert text_of(await requesting.fetch(task["taskId"])) == "1 and 2"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"action": "decline"}, "decline: The user declined to answer"),
        ({"action": "accept", "content": {"amount": 0}}, "The client's answer cannot be used"),
    ],
)
async def test_answers_of_no_use(requesting: RequestingPeer, answer: Any, text: str) -> None:
    """A declined question is handled by the tool; an invalid answer ends the call."""
    task = await requesting.call("order_or_not")
    requesting.answer(await requesting.hear(ASKED), answer)
    assert text_of(await requesting.fetch(task["taskId"])).startswith(text)


async def test_a_requesting_client_that_cannot_be_asked(host: ServerHost) -> None:
    """Without the capability, the task fails like the call, and never waits for input."""
    peer = await RequestingPeer.begun(host, capabilities={})
    task = await peer.call("order")
    assert (await peer.fetch(task["taskId"]))["result"]["isError"] is True
    assert (await peer.hear(STATUS))["params"]["status"] == "failed"
    assert peer.heard == []


async def test_a_cancelled_task_takes_its_question_back(requesting: RequestingPeer) -> None:
    """Canceling a task withdraws its question, and a late answer is ignored."""
    task = await requesting.call("order")
    question = await requesting.hear(ASKED)
    await requesting.result("tasks/cancel", {"taskId": task["taskId"]})
    withdrawn = await requesting.hear("notifications/cancelled")
    assert withdrawn["params"] == {"requestId": question["id"], "_meta": {RELATED: {"taskId": task["taskId"]}}}
    requesting.answer(question, accepted())
    assert await requesting.status(task["taskId"]) == "cancelled"


async def test_nobody_answers() -> None:
    """A question that times out is withdrawn, and the tool gets an error."""
    settings = {"limits": {"ask_timeout_seconds": 0.01}}
    async with ServerHost(container_of(*TOOLS), flags=settings) as host:
        peer = await RequestingPeer.begun(host)
        task = await peer.call("order_or_not")
        assert text_of(await peer.fetch(task["taskId"])).startswith("cancel: Nobody answered")
        assert await peer.hear("notifications/cancelled")


# Over HTTP, where a question needs a waiting client


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    async with serving(container_of(*TOOLS)) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session that supports questions."""
    client = Client(http, server.url)
    await client.begin(elicitation={})
    return client


async def reach(client: Client, task_id: str, status: str) -> None:
    """Poll a task until it has a status."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await client.post(message("tasks/get", {"taskId": task_id}))).json()["result"]["status"] != status:
            pass


async def respond(client: Client, question: Mapping[str, Any], amount: int = 3) -> None:
    body = {"jsonrpc": "2.0", "id": question["id"], "result": accepted(amount)}
    assert (await client.post(json.dumps(body).encode())).status_code == 202


async def test_a_question_waits_for_somebody_who_waits(client: Client) -> None:
    """A question is sent to the request for the result, whose stream later carries the result."""
    task_id = await begin(client, "order")
    await reach(client, task_id, "input_required")
    waiting = Waiting(client, task_id)
    question = await waiting.next()
    assert (question["method"], question["params"]["_meta"]) == (ASKED, {RELATED: {"taskId": task_id}})
    await respond(client, question)
    (reply,) = await waiting.rest()
    assert (reply["id"], text_of(reply)) == (7, "ordered 3")


async def test_a_question_comes_to_who_waits_already(server: HttpServer, client: Client) -> None:
    """Each of several questions is asked once, regardless of the number of waiting requests."""
    task_id = await begin(client, "order_both")
    first = Waiting(client, task_id, 7)
    asked = [await first.next(), await first.next()]
    second = Waiting(client, task_id, 8)
    await until(lambda: 8 in requests_of(server))
    for question in asked:
        await respond(client, question)
    assert [reply["id"] for reply in await first.rest()] == [7]
    assert [reply["id"] for reply in await second.rest()] == [8]


async def test_a_question_that_got_lost_is_asked_again(server: HttpServer, client: Client) -> None:
    """After a reconnect, open questions are sent again, but not answered ones."""
    task_id = await begin(client, "order_both")
    lost = Waiting(client, task_id, 7)
    answered, unanswered = await lost.next(), await lost.next()
    await respond(client, answered)
    await lost.leave()
    await until(lambda: is_lost(server, 7))
    again = Waiting(client, task_id, 8)
    question = await again.next()
    assert question == unanswered
    await respond(client, question)
    assert [text_of(reply) for reply in await again.rest()] == ["3 and 3"]


async def test_a_client_that_takes_no_stream_is_asked_later(server: HttpServer, client: Client) -> None:
    """A question waits for a client that accepts streams."""
    task_id = await begin(client, "order")
    deaf = asyncio.ensure_future(
        client.post(message("tasks/result", {"taskId": task_id}, id=6), Accept="application/json")
    )
    await until(lambda: 6 in requests_of(server))
    await reach(client, task_id, "input_required")
    waiting = Waiting(client, task_id)
    await respond(client, await waiting.next())
    assert [text_of(reply) for reply in await waiting.rest()] == ["ordered 3"]
    assert text_of((await deaf).json()) == "ordered 3"


async def test_a_question_that_nobody_heard_is_forgotten(http: httpx2.AsyncClient) -> None:
    """A question that is withdrawn before a client waits is never sent."""
    settings = {"limits": {"ask_timeout_seconds": 0.02}}
    job = Job()

    @tool(task_support="optional")
    async def order_late(context: ToolContext) -> str:
        try:
            await context.ask(Amount, "How many?")
        except Declined:
            return await job.execute(NoArguments(), context)
        return "never"

    async with serving(container_of(order_late), settings) as server:
        client = Client(http, server.url)
        await client.begin(elicitation={})
        task_id = await begin(client, "order_late")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await job.started.wait()
        waiting = Waiting(client, task_id)
        await until(lambda: 7 in requests_of(server))
        job.release.set()
        (reply,) = await waiting.rest()
        assert text_of(reply) == "done"


async def test_a_question_is_taken_back_where_it_was_asked(client: Client) -> None:
    """A withdrawn question is announced on its stream before the end, or in the session."""
    task_id = await begin(client, "order")
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        waiting = Waiting(client, task_id)
        question = await waiting.next()
        await client.post(message("tasks/cancel", {"taskId": task_id}))
        *withdrawn, reply = await waiting.rest()
        if not withdrawn:
            heard = [(await stream.take()).message for _ in range(2)]
            withdrawn = [said for said in heard if said["method"] == "notifications/cancelled"]
    assert [said["params"]["requestId"] for said in withdrawn] == [question["id"]]
    assert reply["error"]["code"] == -32602


async def test_a_question_that_outlives_its_task(http: httpx2.AsyncClient) -> None:
    """If a tool stops late, its question is withdrawn in the session, because its stream has ended."""
    left: list[asyncio.Future[Amount]] = []
    tidied = asyncio.Event()

    @tool(task_support="optional")
    async def leave_question(context: ToolContext) -> str:
        left.append(asyncio.ensure_future(context.ask(Amount, "How many?")))
        try:
            await asyncio.Event().wait()
        finally:
            await tidied.wait()
        return "never"

    async with serving(container_of(leave_question)) as server:
        client = Client(http, server.url)
        await client.begin(elicitation={})
        async with client.hearing() as stream:
            assert (await stream.take()).is_priming
            task_id = await begin(client, "leave_question")
            waiting = Waiting(client, task_id)
            question = await waiting.next()
            await client.post(message("tasks/cancel", {"taskId": task_id}))
            assert [reply["error"]["code"] for reply in await waiting.rest()] == [-32602]
            tidied.set()
            heard = [(await stream.take()).message for _ in range(3)]
        assert left[0].cancelled()
    assert [said["method"] for said in heard] == [STATUS, STATUS, "notifications/cancelled"]
    assert heard[-1]["params"]["requestId"] == question["id"]


@pytest.mark.parametrize("design", ["requested", "directed"])
async def test_questions_end_with_their_task(design: str) -> None:
    """Questions of code that outlives its tool are canceled, and new ones are not sent."""
    left: list[asyncio.Future[Amount]] = []

    @tool(task_support="optional")
    async def leave_question(context: ToolContext) -> str:
        left.append(asyncio.ensure_future(context.ask(Amount, "How many?")))
        left.append(asyncio.ensure_future(ask_late(context)))
        await turns(3)
        return "done"

    async def ask_late(context: ToolContext) -> Amount:
        await asyncio.wait(left[:1])
        return await context.ask(Amount, "How many, after all?")

    async with ServerHost(container_of(leave_question)) as host:
        peer: Peer = await RequestingPeer.begun(host) if design == "requested" else DirectedPeer(host)
        task = await peer.call("leave_question")
        await peer.until(task["taskId"], "completed")
        await asyncio.wait(left)
        assert left[0].cancelled()
        assert isinstance(left[1].exception(), ToolCancelled)
        assert await peer.status(task["taskId"]) == "completed"
        await peer.settle()
        assert [said["method"] for said in peer.heard if "id" in said] == [ASKED] * (design == "requested")


# Tasks that the server creates


@pytest.mark.parametrize("name", ["order", "ask_from_thread"])
async def test_a_directed_task_asks(directed: DirectedPeer, name: str) -> None:
    """The state of a task shows its question until it is answered."""
    task = await directed.call(name)
    state = await directed.until(task["taskId"], "input_required")
    (question,) = state["inputRequests"].values()
    assert list(state["inputRequests"]) == ["amount"]
    assert set(question) == {"method", "params"}
    assert (question["method"], question["params"]["message"]) == (ASKED, "How many?")
    assert await directed.result("tasks/get", {"taskId": task["taskId"]}) == state
    acknowledged = (await directed.update(task["taskId"], amount=accepted()))["result"]
    assert set(acknowledged) == {"resultType", "_meta"}
    assert acknowledged["resultType"] == "complete"
    assert text_of(await directed.until(task["taskId"], "completed")) == "ordered 3"
    assert directed.heard == []


async def test_answers_may_come_one_by_one(directed: DirectedPeer) -> None:
    """Questions can be answered one by one, and unknown keys are ignored."""
    task = await directed.call("order_both")
    state = await directed.until(task["taskId"], "input_required")
    assert set(state["inputRequests"]) == {"apples", "pears"}
    assert "result" in await directed.update(task["taskId"], pears=accepted(2), plums=accepted(9))
    state = await directed.until(task["taskId"], "input_required")
    assert set(state["inputRequests"]) == {"apples"}
    assert "result" in await directed.update(task["taskId"], pears=accepted(5))
    assert "result" in await directed.update(task["taskId"], apples=accepted(1), pears=accepted(6))
    assert text_of(await directed.until(task["taskId"], "completed")) == "1 and 2"
    assert "result" in await directed.update(task["taskId"], apples=accepted(7))


async def test_the_last_answer_shows_at_once(directed: DirectedPeer) -> None:
    """After the acknowledgement, the state no longer shows an answered question."""
    task = await directed.call("order")
    await directed.until(task["taskId"], "input_required")
    params = {"taskId": task["taskId"], "inputResponses": {"amount": accepted()}}
    update, look = directed.send("tasks/update", params), directed.send("tasks/get", {"taskId": task["taskId"]})
    assert "result" in await directed.reply(update)
    state = (await directed.reply(look))["result"]
    assert (state["status"], "inputRequests" in state) == ("working", False)


async def test_no_key_is_used_twice(directed: DirectedPeer) -> None:
    """Every question of a task has a unique key, whatever the code names it."""
    task = await directed.call("order_again")
    keys = []
    for _ in range(6):
        state = await directed.until(task["taskId"], "input_required")
        (key,) = state["inputRequests"]
        keys.append(key)
        answer = {"roots": []} if key.startswith("roots") else accepted()
        for earlier in keys[:-1]:
            assert "result" in await directed.update(task["taskId"], **{earlier: accepted(9)})
        await directed.update(task["taskId"], **{key: answer})
    assert keys == ["amount", "amount-2", "amount-3", "ask-1", "ask-2", "roots-1"]
    assert text_of(await directed.until(task["taskId"], "completed")) == "[3, 3, 3, 3, 3]"


@pytest.mark.parametrize(
    "answer",
    [None, 1, "yes", [], {}, {"action": "maybe"}, {"action": "accept", "content": 1}, accepted(0), accepted("x")],
)
async def test_an_answer_that_does_not_fit_is_refused(directed: DirectedPeer, answer: Any) -> None:
    """An invalid answer is rejected with a reason, and the question stays open."""
    task = await directed.call("order")
    before = await directed.until(task["taskId"], "input_required")
    error = (await directed.update(task["taskId"], amount=answer))["error"]
    assert error["code"] == -32602
    assert "'amount'" in error["message"]
    assert await directed.result("tasks/get", {"taskId": task["taskId"]}) == before
    await directed.update(task["taskId"], amount=accepted())
    assert text_of(await directed.until(task["taskId"], "completed")) == "ordered 3"


async def test_a_number_beyond_all_is_refused(directed: DirectedPeer) -> None:
    """A number that is too large is an invalid answer, not a server error."""
    task = await directed.call("order")
    await directed.until(task["taskId"], "input_required")
    params = {"taskId": task["taskId"], "inputResponses": {"amount": accepted(12345)}}
    body = message("tasks/update", directed.complete(params), id=99).replace(b"12345", b"1e999")
    directed.transport.send(body)
    assert (await directed.reply(99))["error"]["code"] == -32602
    await directed.update(task["taskId"], amount=accepted())
    assert text_of(await directed.until(task["taskId"], "completed")) == "ordered 3"


async def test_one_wrong_answer_takes_all_with_it(directed: DirectedPeer) -> None:
    """If one answer is invalid, all answers of the request are rejected."""
    task = await directed.call("order_both")
    before = await directed.until(task["taskId"], "input_required")
    assert "error" in await directed.update(task["taskId"], apples=accepted(1), pears=accepted(0))
    assert await directed.result("tasks/get", {"taskId": task["taskId"]}) == before
    assert "result" in await directed.update(task["taskId"], apples=accepted(1), pears=accepted(2))
    assert text_of(await directed.until(task["taskId"], "completed")) == "1 and 2"


@pytest.mark.parametrize("responses", [None, [], 1, "x"])
async def test_answers_must_be_an_object(directed: DirectedPeer, responses: Any) -> None:
    """Answers that are not an object, or are missing, are an error for invalid params."""
    task = await directed.call("order")
    error = await directed.error("tasks/update", {"taskId": task["taskId"], "inputResponses": responses})
    assert error["code"] == -32602
    assert (await directed.error("tasks/update", {"taskId": task["taskId"]}))["code"] == -32602


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refusal_is_an_answer(directed: DirectedPeer, action: str) -> None:
    """A declined question is handled by the tool."""
    task = await directed.call("order_or_not")
    await directed.until(task["taskId"], "input_required")
    await directed.update(task["taskId"], amount={"action": action})
    assert text_of(await directed.until(task["taskId"], "completed")).startswith(f"{action}: ")


async def test_a_form_that_breaks(directed: DirectedPeer, caplog: pytest.LogCaptureFixture) -> None:
    """An error in the tool's form is a failure of the tool, shown as a reference."""
    task = await directed.call("break_form")
    await directed.until(task["taskId"], "input_required")
    answer = {"action": "accept", "content": {"word": "x"}}
    assert "result" in await directed.update(task["taskId"], word=answer)
    state = await directed.until(task["taskId"], "completed")
    assert state["result"]["_meta"]["reference"] in caplog.text


async def test_a_directed_client_that_cannot_be_asked(host: ServerHost) -> None:
    """Without the capability, the task fails with an error that names it."""
    peer = DirectedPeer(host, capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})
    task = await peer.call("order")
    error = (await peer.until(task["taskId"], "failed"))["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_a_task_that_asks_can_be_cancelled(directed: DirectedPeer) -> None:
    """Canceling a task removes its questions, and simultaneous answers change nothing."""
    task = await directed.call("order")
    await directed.until(task["taskId"], "input_required")
    params = {"taskId": task["taskId"]}
    answers = {"inputResponses": {"amount": accepted()}}
    requests = [("tasks/cancel", params), ("tasks/update", {**params, **answers}), ("tasks/get", params)]
    numbers = [directed.send(method, sent) for method, sent in requests]
    replies = [await directed.reply(number) for number in numbers]
    assert all("result" in reply for reply in replies)
    state = replies[-1]["result"]
    assert (state["status"], "inputRequests" in state) == ("cancelled", False)


async def test_code_may_lose_its_patience() -> None:
    """A question that the code has given up is removed, and its answer is ignored."""
    job = Job()

    @tool(task_support="optional")
    async def order_impatiently(context: ToolContext) -> str:
        try:
            async with asyncio.timeout(0.01):
                await context.ask(Amount, "How many?", key="amount")
        except TimeoutError:
            return await job.execute(NoArguments(), context)
        return "never"

    async with ServerHost(container_of(order_impatiently)) as host:
        peer = DirectedPeer(host)
        task = await peer.call("order_impatiently")
        await job.started.wait()
        state = await peer.result("tasks/get", {"taskId": task["taskId"]})
        assert (state["status"], "inputRequests" in state) == ("working", False)
        (kept,) = host.assembly.tasks._tasks.values()
        assert kept.questions.described() == {}
        assert "result" in await peer.update(task["taskId"], amount=accepted())
        job.release.set()
        assert text_of(await peer.until(task["taskId"], "completed")) == "done"


async def test_listeners_see_questions() -> None:
    """A subscriber is notified of each question, with its key."""
    gate = asyncio.Event()

    @tool(task_support="optional")
    async def order_soon(context: ToolContext) -> str:
        await gate.wait()
        return f"{(await context.ask(Amount, 'How many?')).amount}"

    async with ServerHost(container_of(order_soon)) as host:
        peer = DirectedPeer(host)
        task = await peer.call("order_soon")
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await peer.hear("notifications/subscriptions/acknowledged")
        gate.set()
        told = (await peer.hear("notifications/tasks"))["params"]
        assert (told["status"], list(told["inputRequests"])) == ("input_required", ["ask-1"])
        await peer.update(task["taskId"], **{"ask-1": accepted()})
        states = [(await peer.hear("notifications/tasks"))["params"]["status"] for _ in range(2)]
        assert states == ["working", "completed"]


# Both


@pytest.mark.parametrize("design", ["requested", "directed"])
async def test_a_thread_that_asks_is_let_go(design: str) -> None:
    """The question of a thread ends with its task, so the thread does not block forever."""
    asking = AskingFromThread()
    async with ServerHost(container_of(asking)) as host:
        peer: Peer = await RequestingPeer.begun(host) if design == "requested" else DirectedPeer(host)
        task = await peer.call("ask_from_thread")
        await peer.until(task["taskId"], "input_required")
        await peer.result("tasks/cancel", {"taskId": task["taskId"]})
        assert await asyncio.to_thread(asking.over.wait, PATIENCE_SECONDS)
        await until(lambda: not host.assembly.deadlines._pauses)


@pytest.mark.parametrize("design", ["requested", "directed"])
async def test_the_end_of_the_server_ends_questions(design: str) -> None:
    """A shutdown stops a task that waits for an answer."""
    async with ServerHost(container_of(order)) as host:
        peer: Peer = await RequestingPeer.begun(host) if design == "requested" else DirectedPeer(host)
        task = await peer.call("order")
        await peer.until(task["taskId"], "input_required")
        await peer.settle()
        peer.heard.clear()
    assert not host.handler.inflight
    assert await peer.close() == []


@pytest.mark.parametrize("design", ["requested", "directed"])
async def test_the_deadline_stands_still(
    requesting: RequestingPeer, directed: DirectedPeer, design: str, host: ServerHost
) -> None:
    """The timeout is paused while a tool waits for its user, but not for another tool with the same timeout."""
    peer: Peer = requesting if design == "requested" else directed
    task = await peer.call("hurry")
    await peer.until(task["taskId"], "input_required")
    assert (await peer.result("tools/call", {"name": "oversleep"}))["isError"] is True
    assert await peer.status(task["taskId"]) == "input_required"
    if isinstance(peer, RequestingPeer):
        peer.answer(await peer.hear(ASKED), accepted())
    else:
        await directed.update(task["taskId"], amount=accepted())
    await peer.until(task["taskId"], "completed")
