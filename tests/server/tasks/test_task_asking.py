"""Questions of tasks that the client requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import Context, Declined, NoArguments, tool
from axolotl_server import ServerHost
from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import RELATED, STATUS, Job, RequestingPeer
from tests.support.peers.task_results import Waiting, begin, is_lost, requests_of
from tests.support.peers.wire import message
from tests.support.scenarios.asking_tasks import (
    ASKED,
    ASKING_TOOLS,
    Amount,
    accepted,
    text_of,
)
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import container_of


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    async with serving(container_of(*ASKING_TOOLS)) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session that supports questions."""
    client = Client(http, server.url)
    await client.begin(elicitation={})
    return client


@pytest.mark.parametrize("name", ["order", "ask_from_thread"])
async def test_a_requested_task_asks(requesting: RequestingPeer, name: str) -> None:
    """A task sends a request that names it, waits for input, and continues with the answer."""
    task = await requesting.start(name)
    question = await requesting.hear(ASKED)
    assert question["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
    assert question["params"]["message"] == "How many?"
    assert await requesting.status(task["taskId"]) == "input_required"
    requesting.answer(question, accepted())
    assert text_of(await requesting.outcome(task["taskId"])) == "ordered 3"
    states = [(await requesting.hear(STATUS))["params"]["status"] for _ in range(3)]
    assert states == ["input_required", "working", "completed"]


async def test_several_questions_at_once(requesting: RequestingPeer) -> None:
    """A task waits for input until all of its questions are answered."""
    task = await requesting.start("order_both")
    first, second = await requesting.hear(ASKED), await requesting.hear(ASKED)
    assert first["id"] != second["id"]
    requesting.answer(second, accepted(2))
    await requesting.settle()
    assert await requesting.status(task["taskId"]) == "input_required"
    requesting.answer(first, accepted(1))
    assert text_of(await requesting.outcome(task["taskId"])) == "1 and 2"


async def test_an_answer_that_does_not_fit_ends_the_call(requesting: RequestingPeer) -> None:
    """An invalid answer ends the call."""
    task = await requesting.start("order_or_not")
    await requesting.respond(task["taskId"], accepted(0), key="amount")
    text = text_of(await requesting.outcome(task["taskId"]))
    assert text.startswith("The client's answer cannot be used")


async def test_a_requesting_client_that_cannot_be_asked(host: ServerHost) -> None:
    """Without the capability, the task fails like the call, and never waits for input."""
    peer = await RequestingPeer.connect(host, capabilities={})
    task = await peer.start("order")
    assert (await peer.outcome(task["taskId"]))["result"]["isError"] is True
    assert (await peer.hear(STATUS))["params"]["status"] == "failed"
    assert peer.heard == []


async def test_a_cancelled_task_takes_its_question_back(requesting: RequestingPeer) -> None:
    """Canceling a task withdraws its question, and a late answer is ignored."""
    task = await requesting.start("order")
    question = await requesting.hear(ASKED)
    await requesting.result("tasks/cancel", {"taskId": task["taskId"]})
    withdrawn = await requesting.hear("notifications/cancelled")
    assert withdrawn["params"] == {"requestId": question["id"], "_meta": {RELATED: {"taskId": task["taskId"]}}}
    requesting.answer(question, accepted())
    assert await requesting.status(task["taskId"]) == "cancelled"


async def test_nobody_answers() -> None:
    """A question that times out is withdrawn, and the tool gets an error."""
    settings = {"limits": {"ask_timeout_seconds": 0.01}}
    async with ServerHost(container_of(*ASKING_TOOLS), flags=settings) as host:
        peer = await RequestingPeer.connect(host)
        task = await peer.start("order_or_not")
        assert text_of(await peer.outcome(task["taskId"])).startswith("cancel: There was no answer")
        assert await peer.hear("notifications/cancelled")


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
    async def order_late(context: Context) -> str:
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


async def test_a_question_does_not_outlive_its_task(http: httpx2.AsyncClient) -> None:
    """If a tool stops late, its question is withdrawn nevertheless when the task is canceled."""
    left: list[asyncio.Future[Amount]] = []
    tidied = asyncio.Event()

    @tool(task_support="optional")
    async def leave_question(context: Context) -> str:
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
            asked = [(await stream.take()).message for _ in range(2)]
            (question,) = [said for said in asked if said["method"] == ASKED]
            waiting = Waiting(client, task_id)
            await until(lambda: 7 in requests_of(server))
            await client.post(message("tasks/cancel", {"taskId": task_id}))
            (reply,) = await waiting.rest()
            heard = [(await stream.take()).message for _ in range(2)]
            tidied.set()
        assert left[0].cancelled()
    assert reply["error"]["code"] == -32602
    (withdrawn,) = [said for said in heard if said["method"] == "notifications/cancelled"]
    assert withdrawn["params"]["requestId"] == question["id"]
    assert STATUS in [said["method"] for said in heard]
