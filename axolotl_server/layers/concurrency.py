"""How many calls run at once: of a tool, of a tool set, of the whole server."""

from collections.abc import Mapping
from time import monotonic
from typing import Any
from weakref import WeakSet

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec
from axolotl_server.layers.bulkhead import Bulkhead

__all__ = ["ConcurrencyLayer"]


class ConcurrencyLayer(ILayer):
    """Takes a place for each call in every bulkhead that concerns its tool.

    The tool's own place comes first, then that of its set, then the server's: a call that waits for a busy tool holds
    no place that others could use.
    """

    def __init__(self, server: Bulkhead | None = None, toolsets: Mapping[str, Bulkhead] | None = None) -> None:
        self._server = server
        self._toolsets = toolsets or {}
        self.bulkheads: WeakSet[Bulkhead] = WeakSet()
        """Those that stand around something now, to be counted."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put the bulkheads around the tool; one without limits is left alone."""
        limits, own = spec.limits, None
        if limits.max_concurrency is not None:
            own = Bulkhead(spec.name, limits.max_concurrency, limits.queue_limit, limits.queue_timeout_seconds)
        of_set = self._toolsets.get(spec.toolset or "")
        invoke = call_next
        for bulkhead in (self._server, of_set, own):
            if bulkhead is not None:
                self.bulkheads.add(bulkhead)
                invoke = _within(bulkhead, invoke)
        return invoke


def _within(bulkhead: Bulkhead, call_next: Invoke) -> Invoke:
    async def admitted(call: ToolCall) -> Any:
        if bulkhead.free:
            bulkhead.running += 1
        else:
            began = monotonic()
            await bulkhead.wait()
            call.queued_seconds += monotonic() - began
        try:
            return await call_next(call)
        finally:
            bulkhead.leave(call)

    return admitted
