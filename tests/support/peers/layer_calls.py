"""Calls of wrapped tools, made without a server."""

import asyncio
import json
from collections.abc import Mapping
from time import monotonic
from typing import Any

from axolotl_core import ITool, Principal
from axolotl_core.calls.caller import NOBODY, ICaller
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import Limits, ToolSpec
from axolotl_core.layers import Call, Invoke
from axolotl_core.protocol.identity import ANONYMOUS
from tests.support.servers.serving import PATIENCE_SECONDS

ASKABLE: Mapping[str, Any] = {"elicitation": {"form": {}}}


def spec_of(tool: ITool[Any, Any], **limits: Any) -> ToolSpec:
    """Create the spec of a tool with plain limits."""
    plain: dict[str, Any] = {
        "timeout_seconds": PATIENCE_SECONDS,
        "max_concurrency": None,
        "execution": "loop",
        "coerce_arguments": False,
    }
    return ToolSpec.of(tool, Limits(**{**plain, **limits}))


class HandCall:
    """A call of a wrapped tool in a separate task, which can be stopped like the server does."""

    def __init__(
        self,
        invoke: Invoke,
        spec: ToolSpec,
        arguments: Mapping[str, Any] | None = None,
        *,
        principal: Principal = ANONYMOUS,
        caller: ICaller = NOBODY,
        seconds: float | None = None,
    ) -> None:
        raw = json.dumps(arguments or {}).encode()
        self.task: asyncio.Task[Any] = asyncio.ensure_future(self._run(invoke))
        self.call = Call(0, caller, principal, spec=spec, raw=raw, task=self.task)
        self.call.arguments = spec.tool.argument_parser(coerce=False)(raw)
        self.call.deadline = None if seconds is None else monotonic() + seconds

    async def _run(self, invoke: Invoke) -> Any:
        return await invoke(self.call)

    def stop(self, reason: CancelReason = CancelReason.CLIENT) -> None:
        self.call.stop(reason)

    async def outcome(self) -> Any:
        """Wait for its result or exception."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return (await asyncio.gather(self.task, return_exceptions=True))[0]
