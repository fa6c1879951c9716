"""Tasks: the same behavior in both designs, those that clients request and those that the server creates."""

import asyncio
import json
from typing import Any

import pytest

from axolotl_core import Context, Principal, tool
from axolotl_core.errors import ToolCancelled
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from tests.support.peers.task_peers import DESIGNS, DirectedPeer, Job, RequestingPeer, TaskPeer, records_of
from tests.support.scenarios.asking_tasks import ASKED, Amount, AskingFromThread, accepted, order, text_of
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import container_of

ADA, BOB = Principal("ada"), Principal("bob")

methods = pytest.mark.parametrize(
    ("design", "method"),
    [
        (RequestingPeer, "tasks/get"),
        (RequestingPeer, "tasks/result"),
        (RequestingPeer, "tasks/cancel"),
        (DirectedPeer, "tasks/get"),
        (DirectedPeer, "tasks/update"),
        (DirectedPeer, "tasks/cancel"),
    ],
)


@pytest.mark.parametrize("params", [{"name": "greet", "arguments": []}, {"arguments": {}}])
async def test_a_malformed_call_creates_no_task(host: ServerHost, peer: TaskPeer, params: Any) -> None:
    """An invalid request is rejected immediately."""
    assert (await peer.error("tools/call", {**params, "task": {}}))["code"] == -32602
    assert not records_of(host)


@pytest.mark.parametrize(
    ("name", "text"),
    [("refuse", "no such luck"), ("overrun", "Tool overrun did not finish within 0.01 seconds")],
)
async def test_a_tool_that_fails(peer: TaskPeer, name: str, text: str) -> None:
    """A result with an error is available. It fails a task that was requested, and completes one that was not."""
    task = await peer.start(name)
    result = (await peer.outcome(task["taskId"]))["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith(text)
    state = await peer.result("tasks/get", {"taskId": task["taskId"]})
    requested = isinstance(peer, RequestingPeer)
    assert (state["status"], "statusMessage" in state) == ("failed" if requested else "completed", requested)


async def test_the_original_error_is_an_error(peer: TaskPeer) -> None:
    """A JSON-RPC error fails the task, and is returned with its data every time it is queried."""
    task = await peer.start("break_off")
    for _ in range(2):
        error = (await peer.outcome(task["taskId"]))["error"]
        assert error == {"code": -32600, "message": "broken off", "data": {"piece": 3}}
    state = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert (state["status"], state["statusMessage"], "result" in state) == ("failed", "broken off", False)


async def test_what_broke_is_hidden(peer: TaskPeer, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error is shown as a reference and logged with details."""
    task = await peer.start("crash")
    result = (await peer.outcome(task["taskId"]))["result"]
    assert "secret" not in json.dumps([result, await peer.result("tasks/get", {"taskId": task["taskId"]})])
    assert result["_meta"]["axolotl/reference"] in caplog.text


async def test_an_error_that_cannot_be_written_is_hidden(peer: TaskPeer, caplog: pytest.LogCaptureFixture) -> None:
    """An error that cannot be encoded affects neither its task nor a waiting client."""
    task = await peer.start("mumble")
    error = (await peer.outcome(task["taskId"]))["error"]
    assert error["code"] == -32603
    assert error["data"]["reference"] in caplog.text
    assert await peer.status(task["taskId"]) == "failed"


async def test_the_notification_does_not_cancel_a_task(peer: TaskPeer, job: Job) -> None:
    """A cancellation of the request that created a task does not cancel the task."""
    number = peer.send("tools/call", {"name": "job", "task": {}})
    created = (await peer.reply(number))["result"]
    task_id = created.get("task", created)["taskId"]
    await job.started.wait()
    peer.cancel(number)
    assert await peer.status(task_id) == "working"
    assert not job.cancelled.is_set()
    job.release.set()
    assert (await peer.outcome(task_id))["result"]["content"][0]["text"] == "done"


@methods
async def test_unknown_tasks(host: ServerHost, design: type[TaskPeer], method: str) -> None:
    """An unknown or invalid task id is an error for invalid params."""
    peer = await design.connect(host)
    for params in ({"taskId": "nothing"}, {"taskId": 1}, {"taskId": None}, {}):
        assert (await peer.error(method, {**params, "inputResponses": {}}))["code"] == -32602


@methods
@pytest.mark.parametrize(("creator", "stranger"), [(ADA, BOB), (ADA, ANONYMOUS), (ANONYMOUS, ADA)])
async def test_tasks_of_others(
    host: ServerHost, design: type[TaskPeer], method: str, creator: Principal, stranger: Principal
) -> None:
    """A task is hidden from other principals."""
    mine, other = await design.connect(host, creator), await design.connect(host, stranger)
    params = {"taskId": (await mine.start("job"))["taskId"], "inputResponses": {}}
    assert (await other.error(method, params))["code"] == -32602
    assert await mine.status(params["taskId"]) == "working"


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
async def test_a_known_caller_finds_its_tasks_anywhere(host: ServerHost, job: Job, design: type[TaskPeer]) -> None:
    """An authenticated caller can access its tasks from any connection."""
    first, second = [await design.connect(host, ADA) for _ in range(2)]
    task = await first.start("job")
    await first.close()
    job.release.set()
    assert (await second.outcome(task["taskId"]))["result"]["content"][0]["text"] == "done"


async def test_the_designs_keep_apart(host: ServerHost) -> None:
    """A task of one design cannot be accessed through the other, even by the same caller."""
    directed, requesting = await DirectedPeer.connect(host, ADA), await RequestingPeer.connect(host, ADA)
    ours, theirs = await directed.start("job"), await requesting.start("job")
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert (await requesting.error(method, {"taskId": ours["taskId"]}))["code"] == -32602
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        params = {"taskId": theirs["taskId"], "inputResponses": {}}
        assert (await directed.error(method, params))["code"] == -32602
    assert [one["taskId"] for one in (await requesting.result("tasks/list"))["tasks"]] == [theirs["taskId"]]


# Questions


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refusal_is_an_answer(peer: TaskPeer, action: str) -> None:
    """A declined question is handled by the tool."""
    task = await peer.start("order_or_not")
    await peer.respond(task["taskId"], {"action": action}, key="amount")
    assert text_of(await peer.outcome(task["taskId"])).startswith(f"{action}: ")


async def test_the_deadline_stands_still(peer: TaskPeer) -> None:
    """The timeout is paused while a tool waits for its user, but not for another tool with the same timeout."""
    task = await peer.start("hurry")
    await peer.until(task["taskId"], "input_required")
    assert (await peer.result("tools/call", {"name": "oversleep"}))["isError"] is True
    assert await peer.status(task["taskId"]) == "input_required"
    await peer.respond(task["taskId"], accepted(), key="amount")
    await peer.until(task["taskId"], "completed")


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
async def test_a_thread_that_asks_is_let_go(design: type[TaskPeer]) -> None:
    """The question of a thread ends with its task, so the thread does not block forever."""
    asking = AskingFromThread()
    async with ServerHost(container_of(asking)) as host:
        peer = await design.connect(host)
        task = await peer.start("ask_from_thread")
        await peer.until(task["taskId"], "input_required")
        await peer.result("tasks/cancel", {"taskId": task["taskId"]})
        assert await asyncio.to_thread(asking.over.wait, PATIENCE_SECONDS)
        await until(lambda: not host.assembly.deadlines._pauses)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
async def test_the_end_of_the_server_ends_questions(design: type[TaskPeer]) -> None:
    """A shutdown stops a task that waits for an answer."""
    async with ServerHost(container_of(order)) as host:
        peer = await design.connect(host)
        task = await peer.start("order")
        await peer.until(task["taskId"], "input_required")
        await peer.settle()
        peer.unread.clear()
    assert not host.handler.inflight
    assert await peer.close() == []


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
async def test_questions_end_with_their_task(design: type[TaskPeer]) -> None:
    """Questions of code that outlives its tool are canceled, and new ones are not sent."""
    left: list[asyncio.Future[Amount]] = []

    @tool(task_support="optional")
    async def leave_question(context: Context) -> str:
        left.append(asyncio.ensure_future(context.ask(Amount, "How many?")))
        left.append(asyncio.ensure_future(ask_late(context)))
        for _ in range(3):
            await asyncio.sleep(0)
        return "done"

    async def ask_late(context: Context) -> Amount:
        await asyncio.wait(left[:1])
        return await context.ask(Amount, "How many, after all?")

    async with ServerHost(container_of(leave_question)) as host:
        peer = await design.connect(host)
        task = await peer.start("leave_question")
        await peer.until(task["taskId"], "completed")
        await asyncio.wait(left)
        assert left[0].cancelled()
        assert isinstance(left[1].exception(), ToolCancelled)
        assert await peer.status(task["taskId"]) == "completed"
        await peer.settle()
        assert [said["method"] for said in peer.heard if "id" in said] == [ASKED] * (design is RequestingPeer)
