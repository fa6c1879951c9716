"""A tool that must not run twice, controlled by the test."""

import asyncio
from collections import Counter
from typing import Any

from pydantic import BaseModel

from axolotl_core import Context, ITool, Principal
from axolotl_core.layers import Call
from axolotl_core.policies.tool_rules import Idempotency, IResultStore
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.layers.idempotency.layer import IdempotencyLayer
from axolotl_server.stores.results import MemoryResultStore
from tests.support.peers.layer_calls import HandCall, spec_of
from tests.support.servers.serving import until


class Order(BaseModel):
    key: str | None = None
    amount: int = 0


class Pay(ITool[Order, str]):
    """Counts its runs, and waits in each until the test decides how it ends."""

    name = "pay"
    idempotency: Idempotency | None = Idempotency(key="key", window_seconds=60.0)

    def __init__(self) -> None:
        self.runs: Counter[str | None] = Counter()
        self.done: Counter[str | None] = Counter()
        self.cancelled: Counter[str | None] = Counter()
        self.ends: dict[str | None, asyncio.Future[Any]] = {}
        self.contexts: list[Context] = []

    async def execute(self, arguments: Order, context: Context) -> str:
        key = arguments.key
        assert key not in self.ends, "two runs of one key at once"
        self.runs[key] += 1
        self.contexts.append(context)
        self.ends[key] = asyncio.get_running_loop().create_future()
        try:
            said = await self.ends[key]
        except asyncio.CancelledError:
            self.cancelled[key] += 1
            raise
        finally:
            del self.ends[key]
        self.done[key] += 1
        return f"{key} {said}"


def outage_log() -> OutageLog:
    """Create a log that has not logged anything lately."""
    return OutageLog("The result store", "calls refused")


class Till:
    """The tool behind the layer, with a manual clock."""

    def __init__(self, tool: Pay | None = None, store: IResultStore | None = None, **options: Any) -> None:
        self.now = 0.0
        self.finalised: list[Call] = []
        self.tool = tool or Pay()
        self.store = MemoryResultStore(1000, 1_000_000, lambda: self.now) if store is None else store
        self.spec = spec_of(self.tool)
        self.layer = IdempotencyLayer(self.store, self.finalised.append, outage_log(), DeadlineTable(), **options)
        self.invoke = self.layer.wrap(self.spec, lambda call: self.tool.execute(call.arguments, call))

    def begin(self, key: str | None = "k", amount: int = 0, principal: Principal = ANONYMOUS, **more: Any) -> HandCall:
        """Start a call."""
        return HandCall(self.invoke, self.spec, {"key": key, "amount": amount}, principal=principal, **more)

    async def running(self, key: str | None = "k") -> None:
        """Wait until the tool runs for a key."""
        await until(lambda: key in self.tool.ends)

    async def end(self, said: Any, key: str | None = "k") -> None:
        """End the run of a key with a result or an exception."""
        await self.running(key)
        end = self.tool.ends[key]
        if isinstance(said, BaseException):
            end.set_exception(said)
        else:
            end.set_result(said)


def text(outcome: Any) -> str:
    """Return the text of a new or stored output."""
    return outcome if isinstance(outcome, str) else str(outcome.content[0].text)


def forget(call: Call) -> None:
    """A finalizer that does nothing, for tools without per-call resources."""
