"""A call that is stopped at any stage, for any reason: one decision, at most one reply, no leaks."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from axolotl_core import Context, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_server import ServerHost
from tests.support.containers import process_tools
from tests.support.forked_processes import Mailbox
from tests.support.object_counts import bulkhead_of, nothing_left, server_threads, wait_for_threads
from tests.support.peers.memory_peer import Peer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Name, container_of

pytestmark = pytest.mark.slow

LONG = 60.0
REASONS = [reason for reason in CancelReason if reason is not CancelReason.LOST]  # only tasks are lost


class Stage:
    """Tools and a layer that hold a call at a stage until the test releases it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.thread_started = threading.Event()
        self.thread_goes_on = threading.Event()
        self.calls: list[Call] = []
        self.tools = (
            *(tool(wait), tool(max_concurrency=1, queue_limit=9, queue_timeout_seconds=LONG)(queue_up)),
            *(tool(self.swallow), tool(self.block), tool(pool="narrow")(self.block_narrowly), tool(ask)),
            *(tool(name="before")(give), tool(name="after")(give), process_tools.spin),
        )

    def layer(self) -> "StageLayer":
        return StageLayer(self)

    async def swallow(self, context: Context) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self.go_on.wait()
        return "never read"

    def block(self) -> str:
        self.thread_started.set()
        self.thread_goes_on.wait(LONG)
        return "never read"

    def block_narrowly(self) -> str:
        return self.block()

    def release(self) -> None:
        self.go_on.set()
        self.thread_goes_on.set()


async def give() -> str:
    return "given"


async def wait() -> None:
    await asyncio.Event().wait()


async def queue_up() -> None:
    await asyncio.Event().wait()


async def ask(context: Context) -> str:
    return (await context.ask(Name, "who?")).name


class StageLayer(ILayer):
    """Records every call and holds some of them before or after their tool."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def held(call: Call) -> Any:
            self._stage.calls.append(call)
            self._stage.reached.set()
            if spec.name == "before":
                await asyncio.Event().wait()
            output = await call_next(call)
            if spec.name == "after":
                await asyncio.Event().wait()
            return output

        return held


Reach = Callable[[ServerHost, Peer, Stage, str], Awaitable[None]]


async def _running(host: ServerHost, peer: Peer, stage: Stage, path: str) -> None:
    """The code of the tool or of a layer is running."""
    await stage.reached.wait()


async def _queued(host: ServerHost, peer: Peer, stage: Stage, path: str) -> None:
    """The call waits for a slot that another call holds."""
    await until(lambda: bulkhead_of(host, "queue_up").running == 1)
    peer.call("queue_up", id=2)
    await until(lambda: bulkhead_of(host, "queue_up").waiting == 1)


async def _in_thread(host: ServerHost, peer: Peer, stage: Stage, path: str) -> None:
    """The code runs in a thread."""
    await asyncio.to_thread(stage.thread_started.wait, PATIENCE_SECONDS)


async def _before_thread(host: ServerHost, peer: Peer, stage: Stage, path: str) -> None:
    """Another call uses the only thread."""
    await _in_thread(host, peer, stage, path)
    peer.call("block_narrowly", id=2)
    await until(lambda: len(stage.calls) == 2)


async def _asking(host: ServerHost, peer: Peer, stage: Stage, path: str) -> None:
    """The user has been asked."""
    assert (await peer.receive())["method"] == "elicitation/create"


STAGES: dict[str, tuple[str, Reach]] = {
    "running": ("wait", _running),
    "deaf": ("swallow", _running),
    "queued": ("queue_up", _queued),
    "in a thread": ("block", _in_thread),
    "before its thread": ("block_narrowly", _before_thread),
    "asking": ("ask", _asking),
    "before its tool": ("before", _running),
    "after its tool": ("after", _running),
    "before its process": ("spin", _running),
    "in a process": ("spin", _running),
}
NARROW = {
    "limits": {"timeout_seconds": LONG, "threads": 1, "processes": 1},
    "tools": {"spin": {"timeout_seconds": LONG}},
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("stage_name", STAGES)
async def test_a_call_is_stopped(stage_name: str, reason: CancelReason, tmp_path: Any) -> None:
    """At any stage, the call gets at most one reply, knows the reason, and leaves nothing behind."""
    name, reach = STAGES[stage_name]
    stage, before, threads = Stage(), asyncio.all_tasks(), server_threads()
    with Mailbox(tmp_path) as mailbox:
        async with ServerHost(container_of(*stage.tools, layers=[stage.layer()]), flags=NARROW) as host:
            peer = await Peer(host).shake_hands()
            peer.call(name, {"path": mailbox.path} if name == "spin" else {}, id=1)
            await reach(host, peer, stage, mailbox.path)
            if stage_name == "in a process":
                await mailbox.take()
            stopped = [*host.handler.inflight]
            host.handler.inflight.stop_all(reason)
            await until(lambda: not host.handler.inflight)
            stage.release()
            answers = await peer.close()
            await nothing_left(host, before)
    await asyncio.to_thread(wait_for_threads, threads)
    _check(answers, stopped, reason)


def _check(messages: list[Any], stopped: list[Call], reason: CancelReason) -> None:
    answers = [one for one in messages if "method" not in one]
    told = reason in (CancelReason.TIMEOUT, CancelReason.SHUTDOWN)
    assert sorted(answer["id"] for answer in answers) == ([one.request_id for one in stopped] if told else [])
    assert {answer["result"]["_meta"]["axolotl/reason"] for answer in answers} <= {reason}
    assert {one.cancel_reason for one in stopped} == {reason}


@pytest.mark.parametrize("second", REASONS)
@pytest.mark.parametrize("first", REASONS)
async def test_the_first_reason_stands(first: CancelReason, second: CancelReason) -> None:
    """A call that is stopped twice ends for the first reason."""
    stage, before = Stage(), asyncio.all_tasks()
    async with ServerHost(container_of(*stage.tools, layers=[stage.layer()]), flags=NARROW) as host:
        peer = await Peer(host).shake_hands()
        peer.call("swallow", id=1)
        await stage.reached.wait()
        for reason in (first, second):
            host.handler.inflight.stop_all(reason)
        await until(lambda: not host.handler.inflight)
        stage.calls[0].stop(second)
        stage.release()
        answers = await peer.close()
        await nothing_left(host, before)
    _check(answers, stage.calls, first)
