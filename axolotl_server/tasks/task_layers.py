"""The layers around tools whose tasks are stored: those of the submission, and those of each run."""

import asyncio
from collections.abc import Sequence
from typing import Any

from axolotl_core.layers import ILayer, Invoke, ToolCall, fold
from axolotl_server.calls.binding import Binder, ToolBinding
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.layers.deadline import ValidationLayer
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.messages.request import Request


def run_layers(layers: Sequence[ILayer]) -> tuple[ILayer, ...]:
    """Choose the layers of a run: a quota is charged once, when the task is submitted, and the queue limits runs."""
    return tuple(layer for layer in layers if not isinstance(layer, QuotaLayer | ConcurrencyLayer))


class TaskLayers:
    """Binds tools for runs, and admits calls before their tasks exist."""

    def __init__(self, layers: Sequence[ILayer], run_binder: Binder) -> None:
        self._admission = tuple(layer for layer in layers if isinstance(layer, QuotaLayer | ValidationLayer))
        self._run_binder = run_binder
        self._admissions: dict[ToolBinding, Invoke] = {}
        self._bindings: dict[ToolBinding, ToolBinding] = {}

    def bind(self, binding: ToolBinding) -> ToolBinding:
        """Give the binding of a tool for runs of its tasks."""
        if binding not in self._bindings:
            self._bindings[binding] = self._run_binder.bind_tool(binding.spec.tool)
        return self._bindings[binding]

    async def admit(self, request: Request) -> None:
        """Charge quotas and check the arguments of a call, or raise the ToolError that the client gets."""
        target, task = request.target, asyncio.current_task()
        assert target is not None
        assert target.binding is not None
        assert task is not None
        if target.binding not in self._admissions:
            self._admissions[target.binding], _ = fold(self._admission, target.binding.spec, _accept)
        call = ToolCall(
            request.head.id,  # type: ignore[arg-type]  # a message without an ID reaches no method
            request,
            request.exchange.principal,
            uri="",
            spec=target.binding.spec,
            raw=target.raw,
            task=task,
        )
        await self._admissions[target.binding](call)


async def _accept(call: ToolCall) -> Any:
    """Accept a call that has passed all checks."""
    return None
