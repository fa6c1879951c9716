"""Retries of tools whose failures may be temporary."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.tool_rules import Retry

_log = logging.getLogger("axolotl")


class RetryLayer(ILayer):
    """Retries a tool after a random pause, as often as the tool says and while the call has time left.

    A pause that would end after the deadline is not started, so the caller gets the last error instead of a timeout.
    """

    def __init__(
        self,
        draw: Callable[[float, float], float] = random.uniform,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._draw = draw
        self._sleep = sleep

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        rule = spec.tool.retry if isinstance(spec, ToolSpec) else None
        if rule is None:
            return call_next

        async def retried(call: Call) -> Any:
            for attempt in range(1, rule.attempts):
                try:
                    return await call_next(call)
                except Exception as error:
                    pause = self._pause(rule, attempt, call, error)
                    if pause is None:
                        raise
                    _log.info("%s failed with %s, attempt %d", spec.name, type(error).__name__, attempt)
                await self._sleep(pause)
            return await call_next(call)

        return retried

    def _pause(self, rule: Retry, attempt: int, call: Call, error: Exception) -> float | None:
        """Draw the pause before the next attempt; None if there is none."""
        if call.cancelled or not rule.covers(error):
            return None
        pause = self._draw(0.0, rule.longest_pause(attempt))
        remaining = call.remaining_seconds
        return pause if remaining is None or pause < remaining else None
