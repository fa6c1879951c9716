"""Questions of tasks that the server decides on."""

import asyncio
from typing import Any

import pytest

from axolotl_core import Context, NoArguments, tool
from axolotl_server import ServerHost
from tests.support.peers.task_peers import DirectedPeer, Job, records_of
from tests.support.scenarios.asking_tasks import (
    ASKED,
    Amount,
    accepted,
    text_of,
)
from tests.support.tools import container_of


@pytest.mark.parametrize("name", ["order", "ask_from_thread"])
async def test_a_directed_task_asks(directed: DirectedPeer, name: str) -> None:
    """The state of a task shows its question until it is answered."""
    task = await directed.start(name)
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
    task = await directed.start("order_both")
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
    task = await directed.start("order")
    await directed.until(task["taskId"], "input_required")
    params = {"taskId": task["taskId"], "inputResponses": {"amount": accepted()}}
    update, look = directed.send("tasks/update", params), directed.send("tasks/get", {"taskId": task["taskId"]})
    assert "result" in await directed.reply(update)
    state = (await directed.reply(look))["result"]
    assert (state["status"], "inputRequests" in state) == ("working", False)


async def test_no_key_is_used_twice(directed: DirectedPeer) -> None:
    """Every question of a task has a unique key, whatever the code names it."""
    task = await directed.start("order_again")
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
    task = await directed.start("order")
    before = await directed.until(task["taskId"], "input_required")
    error = (await directed.update(task["taskId"], amount=answer))["error"]
    assert error["code"] == -32602
    assert "'amount'" in error["message"]
    assert await directed.result("tasks/get", {"taskId": task["taskId"]}) == before
    await directed.update(task["taskId"], amount=accepted())
    assert text_of(await directed.until(task["taskId"], "completed")) == "ordered 3"


async def test_a_number_beyond_all_is_refused(directed: DirectedPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that is too large is an invalid answer, not a server error."""
    task = await directed.start("order")
    await directed.until(task["taskId"], "input_required")
    params = {"taskId": task["taskId"], "inputResponses": {"amount": accepted(12345)}}
    send = directed.transport.send
    with monkeypatch.context() as patch:
        patch.setattr(directed.transport, "send", lambda body: send(body.replace(b"12345", b"1e999")))
        assert (await directed.error("tasks/update", params))["code"] == -32602
    await directed.update(task["taskId"], amount=accepted())
    assert text_of(await directed.until(task["taskId"], "completed")) == "ordered 3"


async def test_one_wrong_answer_takes_all_with_it(directed: DirectedPeer) -> None:
    """If one answer is invalid, all answers of the request are rejected."""
    task = await directed.start("order_both")
    before = await directed.until(task["taskId"], "input_required")
    assert "error" in await directed.update(task["taskId"], apples=accepted(1), pears=accepted(0))
    assert await directed.result("tasks/get", {"taskId": task["taskId"]}) == before
    assert "result" in await directed.update(task["taskId"], apples=accepted(1), pears=accepted(2))
    assert text_of(await directed.until(task["taskId"], "completed")) == "1 and 2"


@pytest.mark.parametrize("responses", [None, [], 1, "x"])
async def test_answers_must_be_an_object(directed: DirectedPeer, responses: Any) -> None:
    """Answers that are not an object, or are missing, are an error for invalid params."""
    task = await directed.start("order")
    error = await directed.error("tasks/update", {"taskId": task["taskId"], "inputResponses": responses})
    assert error["code"] == -32602
    assert (await directed.error("tasks/update", {"taskId": task["taskId"]}))["code"] == -32602


async def test_a_form_that_breaks(directed: DirectedPeer, caplog: pytest.LogCaptureFixture) -> None:
    """An error in the tool's form is a failure of the tool, shown as a reference."""
    task = await directed.start("break_form")
    await directed.until(task["taskId"], "input_required")
    answer = {"action": "accept", "content": {"word": "x"}}
    assert "result" in await directed.update(task["taskId"], word=answer)
    state = await directed.until(task["taskId"], "completed")
    assert state["result"]["_meta"]["axolotl/reference"] in caplog.text


async def test_a_directed_client_that_cannot_be_asked(host: ServerHost) -> None:
    """Without the capability, the task fails with an error that names it."""
    peer = DirectedPeer(host, capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})
    task = await peer.start("order")
    error = (await peer.until(task["taskId"], "failed"))["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_a_task_that_asks_can_be_cancelled(directed: DirectedPeer) -> None:
    """Canceling a task removes its questions, and simultaneous answers change nothing."""
    task = await directed.start("order")
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
    async def order_impatiently(context: Context) -> str:
        try:
            async with asyncio.timeout(0.01):
                await context.ask(Amount, "How many?", key="amount")
        except TimeoutError:
            return await job.execute(NoArguments(), context)
        return "never"

    async with ServerHost(container_of(order_impatiently)) as host:
        peer = DirectedPeer(host)
        task = await peer.start("order_impatiently")
        await job.started.wait()
        state = await peer.result("tasks/get", {"taskId": task["taskId"]})
        assert (state["status"], "inputRequests" in state) == ("working", False)
        (kept,) = records_of(host)
        assert kept.questions == {}
        assert "result" in await peer.update(task["taskId"], amount=accepted())
        job.release.set()
        assert text_of(await peer.until(task["taskId"], "completed")) == "done"


async def test_listeners_see_questions() -> None:
    """A subscriber is notified of each question, with its key."""
    gate = asyncio.Event()

    @tool(task_support="optional")
    async def order_soon(context: Context) -> str:
        await gate.wait()
        return f"{(await context.ask(Amount, 'How many?')).amount}"

    async with ServerHost(container_of(order_soon)) as host:
        peer = DirectedPeer(host)
        task = await peer.start("order_soon")
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await peer.hear("notifications/subscriptions/acknowledged")
        gate.set()
        told = (await peer.hear("notifications/tasks"))["params"]
        assert (told["status"], list(told["inputRequests"])) == ("input_required", ["ask-1"])
        await peer.update(task["taskId"], **{"ask-1": accepted()})
        states = [(await peer.hear("notifications/tasks"))["params"]["status"] for _ in range(2)]
        assert states == ["working", "completed"]
