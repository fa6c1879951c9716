"""Abandoned calls: the caller is answered, and the code is counted until it ends."""

import asyncio
import threading
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import Context, IPrompt, NoArguments, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ToolCancelled
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from tests.support.endless_tools import SHORT, Stuck
from tests.support.peers.memory_peer import Peer
from tests.support.peers.wire import META, call
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Echo, Name, Probe, container_of


async def test_a_caller_is_answered_without_the_code() -> None:
    """The caller gets one reply, and the code is counted until it ends and leaves nothing behind."""
    stuck = Stuck()
    before = asyncio.all_tasks()
    async with ServerHost(container_of(stuck, Echo())) as host:
        peer = Peer(host)
        inflight = host.handler.inflight
        peer.call("stuck", id=1)
        assert (await peer.receive())["result"]["_meta"]["axolotl/reason"] == "timeout"
        assert (len(inflight), len(inflight.zombies), inflight.zombies.by_name()) == (0, 1, {"stuck": 1})
        stuck.release.set()
        await until(lambda: len(inflight.zombies) == 0)
        peer.call("echo", id=2)
        assert (await peer.receive())["id"] == 2
        assert await peer.close() == []
        assert inflight.zombies.total == 1
    await until(lambda: asyncio.all_tasks() == before)


async def _speak(context: Context) -> None:
    context.report_progress(len(asyncio.all_tasks()))
    context.log("error", "still here")
    context.hang_up()
    await context.ask(Name, "who?")


async def test_a_caller_that_cancelled_gets_no_more_messages() -> None:
    """After a cancellation the caller gets no more messages, whatever the code does."""
    stuck = Stuck(_speak)
    async with ServerHost(container_of(stuck, Echo())) as host:
        peer = await Peer(host).shake_hands()
        peer.call("stuck", id=1, progressToken=1)
        await stuck.started.wait()
        peer.cancel(1)
        await until(lambda: len(host.handler.inflight.zombies) == 1)
        stuck.release.set()
        await stuck.ended.wait()
        peer.call("echo", id=2)
        assert (await peer.receive())["id"] == 2
        assert await peer.close() == []
    assert len(stuck.problems) == 2
    assert all(isinstance(problem, ToolCancelled) for problem in stuck.problems)
    assert stuck.contexts[0].cancel_reason is CancelReason.CLIENT


async def test_a_thread_cannot_ask_when_its_caller_is_gone() -> None:
    """A thread of an abandoned call cannot ask its caller."""
    go_on, ended = threading.Event(), threading.Event()
    problems: list[BaseException] = []

    @tool(timeout_seconds=SHORT)
    def dig(context: Context) -> None:
        go_on.wait(PATIENCE_SECONDS)
        try:
            asyncio.run(context.ask(Name, "who?"))
        except ToolCancelled as error:
            problems.append(error)
        ended.set()

    async with connect(container_of(dig)) as client:
        assert (await client.call("dig")).is_error
        go_on.set()
        assert await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)
    assert len(problems) == 1


async def test_a_coroutine_in_a_thread_is_cancelled() -> None:
    """Asynchronous code in a thread is canceled when its call is stopped."""
    cancelled = threading.Event()

    @tool(execution="thread", timeout_seconds=SHORT)
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with ServerHost(container_of(wait)) as host:
        client = InProcessClient(host.handler)
        assert (await client.call("wait")).meta["axolotl/reason"] == "timeout"
        assert await asyncio.to_thread(cancelled.wait, PATIENCE_SECONDS)
        await until(lambda: len(host.handler.inflight.zombies) == 0)
        await client.close()


async def test_an_id_is_free_again() -> None:
    """The id of an abandoned request can be reused, and a cancellation affects the new request."""
    stuck, probe = Stuck(), Probe()
    async with ServerHost(container_of(stuck, probe)) as host:
        peer = Peer(host)
        peer.call("stuck", id=1)
        await peer.receive()
        peer.call("probe", id=1)
        await probe.started.wait()
        stuck.release.set()
        await stuck.ended.wait()
        peer.cancel(1)
        await asyncio.wait_for(probe.cancelled.wait(), PATIENCE_SECONDS)
        assert await peer.close() == []


class Watching(ILayer):
    """Records how calls end."""

    def __init__(self, name: str, notes: list[str], *, fails: bool = False) -> None:
        self._name = name
        self._notes = notes
        self._fails = fails

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def watched(call: Call) -> Any:
            call.when_abandoned(self._abandoned)
            try:
                return await call_next(call)
            finally:
                self._notes.append(f"{self._name} ended")

        return watched

    def _abandoned(self) -> None:
        self._notes.append(f"{self._name} abandoned")
        if self._fails:
            raise RuntimeError("no record")


async def test_layers_are_notified_before_the_reply(caplog: pytest.LogCaptureFixture) -> None:
    """Layers are notified of an abandoned call once, before the reply, innermost first, even if one of them fails."""
    notes: list[str] = []
    stuck = Stuck()
    layers = [Watching("outer", notes), Watching("middle", notes, fails=True), Watching("inner", notes)]
    async with connect(container_of(stuck, layers=layers)) as client:
        assert (await client.call("stuck")).meta["axolotl/reason"] == "timeout"
        assert notes == ["inner abandoned", "middle abandoned", "outer abandoned"]
        stuck.release.set()
        await until(lambda: len(notes) == 6)
    assert notes[3:] == ["inner ended", "middle ended", "outer ended"]
    assert "no record" in caplog.text


async def test_abandoned_code_counts_against_the_limit() -> None:
    """Abandoned code counts against the limit of running calls."""
    stuck = Stuck()
    async with connect(container_of(stuck, Echo()), settings={"limits": {"max_inflight": 2}}) as client:
        for _ in range(2):
            assert (await client.call("stuck")).meta["axolotl/reason"] == "timeout"
        assert (await client.call("echo")).text == "The server is busy; try again"
        stuck.release.set()
        await stuck.ended.wait()
        await until(lambda: True)
        assert not (await client.call("echo")).is_error


async def test_one_message_of_a_batch() -> None:
    """A batch is answered when its last message is, and an abandoned call does not delay it."""
    stuck = Stuck()
    async with ServerHost(container_of(stuck, Echo())) as host:
        peer = await Peer(host).shake_hands("2025-03-26")
        batch = [call("stuck", id=1, handshake=True), call("echo", {"text": "x"}, id=2, handshake=True)]
        peer.transport.send(b"[%b]" % b",".join(batch))
        first, second = await peer.receive()
        assert first["result"]["_meta"]["axolotl/reason"] == "timeout"
        assert second["result"]["content"][0]["text"] == "x"
        stuck.release.set()
        assert await peer.close() == []


class StuckPrompt(IPrompt[NoArguments]):
    """A prompt that never ends."""

    name = "stuck"
    timeout_seconds = SHORT

    def __init__(self, stuck: Stuck) -> None:
        self._stuck = stuck

    async def render(self, arguments: NoArguments, context: Context) -> str:
        return await self._stuck.execute(arguments, context)


async def test_a_prompt_that_does_not_end() -> None:
    """A prompt that never ends is answered with a protocol error in time."""
    stuck = Stuck()
    container = container_of()
    container.prompts = providers.Object([StuckPrompt(stuck)])
    async with connect(container) as client:
        with pytest.raises(RemoteError, match="did not finish within"):
            await client.get_prompt("stuck")
        stuck.release.set()


async def test_a_task_is_settled_in_time() -> None:
    """A task whose code ignores cancellation ends for its caller in time."""
    stuck = Stuck()
    stuck.task_support = "required"
    capabilities: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    async with connect(container_of(stuck), capabilities=capabilities) as client:
        begun = await client.request("tools/call", {"name": "stuck", "arguments": {}, "_meta": meta})
        await stuck.stopped.wait()
        asked = {"taskId": begun["taskId"], "_meta": meta}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (task := await client.request("tasks/get", asked))["status"] == "working":
                pass
        assert task["result"]["_meta"]["axolotl/reason"] == "timeout"
        stuck.release.set()
        await stuck.ended.wait()
        assert (await client.request("tasks/get", asked))["result"] == task["result"]
