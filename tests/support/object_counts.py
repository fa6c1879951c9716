"""Counts of the objects that a server holds."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

from axolotl_server import ServerHost
from axolotl_server.layers.concurrency import Bulkhead
from tests.support.servers.serving import PATIENCE_SECONDS, until


def bulkheads_of(host: ServerHost, name: str) -> Iterator[Bulkhead]:
    """Find the bulkheads around a tool, the outermost first."""
    binding = host.assembly.tools.find(name)
    assert binding is not None
    pending: list[Any] = [binding.invoke]
    while pending:
        found = pending.pop()
        if isinstance(found, Bulkhead):
            yield found
        else:
            pending += [cell.cell_contents for cell in getattr(found, "__closure__", None) or ()]


def bulkhead_of(host: ServerHost, name: str) -> Bulkhead:
    """Find the only bulkhead around a tool."""
    [found] = bulkheads_of(host, name)
    return found


def holdings(host: ServerHost) -> dict[str, Any]:
    """Count everything that a call can leave in a server; all counts are zero when nothing runs."""
    inflight, deadlines = host.handler.inflight, host.assembly.deadlines
    counts = {
        "in flight": len(inflight),
        "callers": len(inflight._by_share),
        "zombies": len(inflight.zombies),
        "finalising": len(inflight.scope_closer),
        "deadlines": len(deadlines._timed),
        "clocks that stand still": len(deadlines._pauses),
    }
    for binding in host.assembly.tools.bindings():
        for bulkhead in bulkheads_of(host, binding.spec.name):
            counts[f"places of {binding.spec.name}"] = bulkhead.running
            counts[f"queue of {binding.spec.name}"] = bulkhead.waiting
    return {what: count for what, count in counts.items() if count}


async def nothing_left(host: ServerHost, tasks: set[Any]) -> None:
    """Wait until a server holds nothing and runs no other tasks than these."""
    try:
        await until(lambda: not holdings(host) and asyncio.all_tasks() <= tasks)
    except TimeoutError:
        left = [task.get_coro() for task in asyncio.all_tasks() - tasks]
        raise AssertionError(f"left behind: {holdings(host)}, {left}") from None
    assert host.handler.inflight.free_capacity == host.settings.limits.max_inflight


def server_threads() -> set[threading.Thread]:
    """Find the threads of all servers in this process; other tests may have some."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("axolotl")}


def wait_for_threads(before: set[threading.Thread]) -> None:
    """Wait until all server threads since a snapshot have ended."""
    for thread in server_threads() - before:
        if thread.is_alive():
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), f"{thread.name} does not end"
